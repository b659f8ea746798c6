package web

import (
	"context"
	"crypto/subtle"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// Settings are the settings that people change on the page while the server runs.
type Settings interface {
	// Show returns the current settings and the possible choices.
	Show(ctx context.Context) (ShownSettings, error)
	// Current returns the current choices.
	Current(ctx context.Context) Choices
	// Change stores choices and applies them. A nil key leaves the endpoint's key unchanged;
	// an empty one removes it.
	Change(ctx context.Context, c Choices, key *string) error
	// Test checks an endpoint and its model, with the stored key if key is nil.
	Test(ctx context.Context, c Choices, key *string) ([]Finding, error)
	// GetPart starts the download of an optional part.
	GetPart(ctx context.Context, part string) error
}

// Choices are the settings that people choose.
type Choices struct {
	BaseURL string `json:"base_url,omitempty"` // OpenAI-compatible endpoint
	Model   string `json:"model"`              // that writes answers; empty: sentences are quoted
	// Confidence is the minimum probability, 0 to 1, at which quoted sentences are an answer.
	Confidence *float64 `json:"confidence,omitempty"`
	Language   string   `json:"language"`        // of the model's answers; empty: the question's
	Style      string   `json:"style,omitempty"` // auto, brief, detailed or list
}

// ShownSettings is the reply of GET and PUT /api/settings.
type ShownSettings struct {
	Choices
	// Fixed maps each setting that cannot be changed to the flag that fixes it.
	Fixed map[string]string `json:"fixed"`
	// Key is the source of the endpoint's key: "none", "stored" or "fixed". The key itself is
	// never sent.
	Key string `json:"key"`
	// Code means that an endpoint on another machine needs the code that the server printed
	// at startup.
	Code bool `json:"code"`
	// Failing means that the model failed on the last question, so sentences are quoted.
	Failing bool `json:"failing,omitempty"`
	// SelfTest is the result of the model's self-test.
	SelfTest *Finding `json:"self_test,omitempty"`
	// Found are the model servers found on this machine.
	Found []ModelServer `json:"found"`
	// Parts are the optional parts that can be downloaded.
	Parts []Part `json:"parts"`
	// Reader are the results of checking the programs that read files.
	Reader []Finding `json:"reader"`
}

// A ModelServer is a model server on this machine.
type ModelServer struct {
	Name    string   `json:"name"`
	BaseURL string   `json:"base_url"`
	Models  []string `json:"models"`
}

// A Part is an optional part that can be downloaded.
type Part struct {
	Name      string `json:"name"`
	Model     string `json:"model"`
	Licence   string `json:"licence"`
	Languages int    `json:"languages"`         // supported by the part
	Bytes     int64  `json:"bytes"`             // to download
	Done      int64  `json:"done"`              // bytes downloaded
	Encoded   int    `json:"encoded,omitempty"` // chunks encoded while it is in use
	Chunks    int    `json:"chunks,omitempty"`  // chunks in total
	// State is "missing", "getting", "ready" (another is used), "used" or "failed".
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"` // why it failed or is unavailable
}

// A Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // "ok", "warning" (works, but could work better), "failed" or "pending" (not ended)
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // what to do next, if anything
}

// settingsRequest is the body of PUT /api/settings and POST /api/settings/test. The settings of
// missing members remain unchanged.
type settingsRequest struct {
	BaseURL *string `json:"base_url,omitempty"`
	Model   *string `json:"model,omitempty"`
	// Key is the endpoint's key; empty removes it. It is kept for this endpoint only, and
	// cannot be read back.
	Key        *string  `json:"key,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	Language   *string  `json:"language,omitempty"`
	Style      *string  `json:"style,omitempty"`
	// Code is the code that the server printed at startup. On a server without keys it is
	// required for an endpoint on another machine.
	Code string `json:"code,omitempty"`
}

// settingsTest is the reply of POST /api/settings/test.
type settingsTest struct {
	OK     bool      `json:"ok"`
	Checks []Finding `json:"checks"`
}

// partRequest is the body of POST /api/settings/parts.
type partRequest struct {
	Part string `json:"part"`
}

// Limits of settings, in bytes.
const (
	maxEndpoint = 500
	maxName     = 200
	maxSecret   = 4000
	maxLanguage = 40
)

// AnswerStyles returns the styles that can be chosen.
func AnswerStyles() []string { return []string{"auto", "brief", "detailed", "list"} }

// BadSetting returns the error for an invalid setting.
func BadSetting(field, format string, args ...any) error {
	return invalidField(field, "bad_setting", format, args...)
}

// FixedSetting returns the error for a change to a setting that a flag fixes.
func FixedSetting(field, flag string) error {
	return problem(http.StatusConflict, "setting_fixed",
		"%s is fixed by %s or its environment variable: start the server without it to choose the value here", field, flag).withField(field)
}

// UnstoredSetting returns the error for a change in a read-only library.
func UnstoredSetting() error {
	return problem(http.StatusConflict, "library_read_only",
		"the library is read-only here, so settings cannot be stored: use flags")
}

// UnavailablePart returns the error for a part that cannot be downloaded.
func UnavailablePart(format string, args ...any) error {
	return problem(http.StatusConflict, "part_unavailable", format, args...).withField("part")
}

// settingsHandlers serve the settings.
type settingsHandlers struct {
	settings  Settings
	answering *answering
	code      string // required for an endpoint on another machine; empty if keys guard the server
}

func (h *settingsHandlers) show(c echo.Context) error {
	shown, err := h.settings.Show(c.Request().Context())
	if err != nil {
		return err
	}
	shown.Code, shown.Failing = h.code != "", h.answering.modelDetail() != ""
	return reply(c, http.StatusOK, shown)
}

func (h *settingsHandlers) change(c echo.Context) error {
	next, key, err := h.readRequest(c)
	if err != nil {
		return err
	}
	before := h.settings.Current(c.Request().Context())
	if err := h.settings.Change(c.Request().Context(), next, key); err != nil {
		return err
	}
	if key != nil || next.Model != before.Model || next.BaseURL != before.BaseURL {
		h.answering.fallback.Store(nil) // the new model may work
	}
	return h.show(c)
}

func (h *settingsHandlers) test(c echo.Context) error {
	next, key, err := h.readRequest(c)
	if err != nil {
		return err
	}
	if next.Model == "" {
		return BadSetting("model", "name the model to try")
	}
	found, err := h.settings.Test(c.Request().Context(), next, key)
	if err != nil {
		return err
	}
	failed := slices.ContainsFunc(found, func(f Finding) bool { return f.State == "failed" })
	return reply(c, http.StatusOK, settingsTest{!failed, found})
}

func (h *settingsHandlers) getPart(c echo.Context) error {
	var r partRequest
	if err := decodeSetting(c, &r); err != nil {
		return err
	}
	if err := h.settings.GetPart(c.Request().Context(), r.Part); err != nil {
		return err
	}
	return h.show(c)
}

// decodeSetting decodes a body with the content type of JSON, which forms of other sites
// cannot send.
func decodeSetting(c echo.Context, into any) error {
	if kind, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType)); err != nil || kind != echo.MIMEApplicationJSON {
		return refuse(c, problem(http.StatusUnsupportedMediaType, "not_json",
			"send JSON with the header 'Content-Type: application/json'"))
	}
	_, err := decode(c, into)
	return err
}

// readRequest reads a request for a change or a test, and returns the resulting choices.
func (h *settingsHandlers) readRequest(c echo.Context) (next Choices, key *string, err error) {
	var r settingsRequest
	if err := decodeSetting(c, &r); err != nil {
		return next, nil, err
	}
	using := h.settings.Current(c.Request().Context())
	if next, err = r.applyTo(using); err != nil {
		return next, nil, err
	}
	// The endpoint in use was permitted before, by a flag or with the code.
	inUse := using.Model != "" && next.BaseURL == using.BaseURL
	if h.code != "" && next.Model != "" && !inUse && !isLocalEndpoint(next.BaseURL) &&
		subtle.ConstantTimeCompare([]byte(strings.ToUpper(strings.TrimSpace(r.Code))), []byte(h.code)) != 1 {
		return next, nil, problem(http.StatusForbidden, "code_needed",
			"%s is on another machine, which would receive your questions and passages of your documents: "+
				"give the code that 'ibid serve' printed when it started", next.BaseURL).withField("code")
	}
	return next, r.Key, nil
}

// applyTo returns the choices with the changes of a request.
func (r *settingsRequest) applyTo(c Choices) (Choices, error) {
	for _, s := range []struct {
		to    *string
		field string
		from  *string
		most  int
	}{{&c.BaseURL, "base_url", r.BaseURL, maxEndpoint}, {&c.Model, "model", r.Model, maxName},
		{&c.Language, "language", r.Language, maxLanguage}, {&c.Style, "style", r.Style, maxName}, {new(string), "key", r.Key, maxSecret}} {
		if s.from == nil {
			continue
		}
		*s.to = strings.TrimSpace(*s.from)
		if len(*s.to) > s.most || strings.ContainsFunc(*s.to, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return c, BadSetting(s.field, "%s has control characters or more than %d bytes", s.field, s.most)
		}
	}
	if r.Style != nil && !slices.Contains(AnswerStyles(), c.Style) {
		return c, BadSetting("style", "there is no style %.40q: choose one of %s", c.Style, strings.Join(AnswerStyles(), ", "))
	}
	if r.Confidence != nil {
		if !(*r.Confidence >= 0 && *r.Confidence <= 1) {
			return c, BadSetting("confidence", "confidence is %g: give 0 to 1", *r.Confidence)
		}
		c.Confidence = r.Confidence
	}
	if r.BaseURL != nil {
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return c, BadSetting("base_url", "the endpoint must be an address such as http://127.0.0.1:11434/v1, without a name, password or query")
		}
		c.BaseURL = strings.TrimRight(u.Scheme+"://"+strings.ToLower(u.Host)+u.EscapedPath(), "/")
	}
	return c, nil
}

// isLocalEndpoint reports whether an endpoint is a loopback address. Other names that resolve
// to this machine do not count, since they may change.
func isLocalEndpoint(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && isLoopback(u.Hostname())
}
