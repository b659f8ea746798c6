package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// webhookConfig has the address that is called when an answer or a sync ends.
type webhookConfig struct {
	Webhook           string `help:"@webhook" placeholder:"URL" group:"Server"`
	WebhookSecretFile string `help:"@webhook_secret" placeholder:"FILE" group:"Server"`
}

// Limits of a [webhook].
const (
	webhookQueue    = 1000 // waiting calls
	webhookAttempts = 4    // attempts per call
	webhookTimeout  = 10 * time.Second
	webhookPause    = time.Second // before the second attempt; each later pause is four times as long
	leastSecret     = 16          // bytes
)

// A webhook calls an address, signed as described at https://www.standardwebhooks.com. Callers
// never wait for it: if the queue is full, it drops the call.
type webhook struct {
	url    string
	secret []byte
	logger *slog.Logger
	queue  chan []byte
	pause  time.Duration
}

// webhook returns the configured webhook, or nil.
func (c webhookConfig) webhook(getenv func(string) string, logger *slog.Logger) (*webhook, error) {
	if c.Webhook == "" {
		return nil, nil
	}
	u, err := url.Parse(c.Webhook)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, usageError("--webhook %s: give an address such as https://example.org/ibid, without a password", c.Webhook)
	}
	secret, err := secretFrom(c.WebhookSecretFile, getenv("IBID_WEBHOOK_SECRET"), "the secret of the webhook")
	if err != nil {
		return nil, err
	}
	key := []byte(secret)
	if coded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, usageError("the secret of the webhook begins with whsec_, but the rest of it is not base64")
		}
	}
	if len(key) < leastSecret {
		return nil, usageError("--webhook needs a secret of %d bytes or more, in --webhook-secret-file or $IBID_WEBHOOK_SECRET", leastSecret)
	}
	return &webhook{c.Webhook, key, logger, make(chan []byte, webhookQueue), webhookPause}, nil
}

// sendEvent queues a call. A nil webhook sends nothing.
func (w *webhook) sendEvent(kind string, members map[string]any) {
	if w == nil {
		return
	}
	members["type"], members["timestamp"] = kind, time.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(members)
	if err != nil { // only strings and numbers
		panic(err)
	}
	select {
	case w.queue <- body:
	default:
		w.logger.Warn("a webhook call was dropped because too many are waiting", "type", kind)
	}
}

// run makes the calls until ctx is done.
func (w *webhook) run(ctx context.Context) {
	client := &http.Client{Timeout: webhookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return
		case body := <-w.queue:
			if err := w.call(ctx, client, "msg_"+rand.Text(), body); err != nil && ctx.Err() == nil {
				w.logger.Warn("calling the webhook failed", "error", err)
			}
		}
	}
}

// call sends one message, and repeats attempts that may succeed later.
func (w *webhook) call(ctx context.Context, client *http.Client, id string, body []byte) error {
	pause := w.pause
	for attempt := 1; ; attempt++ {
		status, err := w.post(ctx, client, id, body)
		if err == nil && status < 300 {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("the reply was %d %s", status, http.StatusText(status))
		}
		final := status >= 300 && status < 500 && status != http.StatusTooManyRequests
		if final || attempt == webhookAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause *= 4
		}
	}
}

func (w *webhook) post(ctx context.Context, client *http.Client, id string, body []byte) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, w.secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	r.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"ibid"}, "Webhook-Id": {id}, "Webhook-Timestamp": {at},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}}
	reply, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.CopyN(io.Discard, reply.Body, 64<<10) // so that the connection is reused
	return reply.StatusCode, reply.Body.Close()
}
