package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type healthCmd struct {
	Addr string `help:"Address on which the server listens." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`

	Ready bool `help:"Also fail while the folders are being read for the first time, or the store is unreachable." noenv:""`
}

// Help is what 'ibid health --help' says in addition to the flags.
func (healthCmd) Help() string {
	return "For the health check of a container, which has no other program: exit code 0 if the server on this machine replies, else 1."
}

// Run asks the server for its state.
func (c *healthCmd) Run(s surroundings) error {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return usageError("--addr: %v", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() { // it listens on every address
		host = "127.0.0.1"
	}
	address := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/healthz"}
	if c.Ready {
		address.Path = "/readyz"
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // never through a proxy
	reply, err := client.Get(address.String())
	if err != nil {
		return fmt.Errorf("no server replies at %s: start it with 'ibid serve', or name its address with --addr: %w", address.Host, err)
	}
	defer func() { _ = reply.Body.Close() }() // only read
	var said struct{ Status, Version, Reason, Detail string }
	text, err := io.ReadAll(io.LimitReader(reply.Body, 1<<16))
	if err = errors.Join(err, json.Unmarshal(text, &said)); err != nil {
		return fmt.Errorf("%s: the reply is not that of Ibid: %w", &address, err)
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", &address, cmp.Or(said.Reason, strings.ToLower(http.StatusText(reply.StatusCode))))
	}
	_, err = fmt.Fprintln(s.stdout, printable(cmp.Or(said.Detail, "ok")))
	return err
}
