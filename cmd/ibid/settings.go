package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ibid/retrieve/state"
	"ibid/web"
)

// settingsNote is the name of the stored note with the settings chosen on the page.
const settingsNote = "chosen settings"

// A chosen has the settings chosen on the page as stored, without the endpoint's key.
type chosen struct {
	web.Choices
	Changed time.Time `json:"changed"` // lets other processes notice a new key
}

// readChosen returns the settings chosen on the page.
func readChosen(ctx context.Context, store *state.Store) (c chosen, err error) {
	_, err = readNote(ctx, store, settingsNote, "the settings chosen on the page", &c)
	return c, err
}

// readNote reads a note stored by [storeNote] and reports whether it exists.
func readNote(ctx context.Context, store *state.Store, name, what string, to any) (known bool, err error) {
	note, err := store.Note(ctx, name)
	if known = err == nil && note != ""; known {
		err = json.Unmarshal([]byte(note), to)
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", what, err)
	}
	return known, nil
}

// storeNote stores a value as JSON in the store's notes.
func storeNote(ctx context.Context, store *state.Store, name string, v any) error {
	note, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return store.SetNote(ctx, name, string(note))
}

// A given has the names of the flags set on the command line or by variables. They override the
// settings chosen on the page.
type given map[string]bool

// fixedSettings returns the settings that cannot be chosen on the page, by JSON name, each with
// the flag that fixes it. An endpoint and its model are chosen together, so a flag for the
// model fixes both.
func (g given) fixedSettings() map[string]string {
	fixed := map[string]string{}
	for setting, flag := range map[string]string{"base_url": "base-url", "model": "model", "confidence": "confidence",
		"language": "answer-language", "style": "answer-style"} {
		if g[flag] {
			fixed[setting] = "--" + flag
		}
	}
	if g["model"] && !g["base-url"] {
		fixed["base_url"] = "--model"
	}
	return fixed
}

// choose returns a command's settings combined with those chosen on the page: flags and
// variables come first, then the page, then defaults. The data directory has the keys of
// endpoints chosen on the page.
func (s surroundings) choose(c web.Choices, data string, m modelConfig, e endpointConfig) (modelConfig, endpointConfig) {
	fixed := s.given.fixedSettings()
	e.BaseURL = strings.TrimRight(e.BaseURL, "/")
	if fixed["base_url"] == "" && c.BaseURL != "" && c.BaseURL != e.BaseURL {
		e.BaseURL, e.APIKeyFile, e.NoVariable = c.BaseURL, "", true // a key on the command line is for the other endpoint
	}
	if e.APIKeyFile == "" && (e.NoVariable || s.getenv("OPENAI_API_KEY") == "") {
		file := keyFile(data, e.BaseURL)
		if info, err := os.Lstat(file); data != "" && err == nil && info.Mode().IsRegular() {
			e.APIKeyFile = file
		}
	}
	if fixed["model"] == "" && c.BaseURL == e.BaseURL { // the model was chosen for this endpoint
		m.Model = c.Model
	}
	if fixed["confidence"] == "" && c.Confidence != nil {
		m.Confidence = *c.Confidence
	}
	if fixed["language"] == "" {
		m.AnswerLanguage = c.Language
	}
	if fixed["style"] == "" {
		m.AnswerStyle = cmp.Or(c.Style, m.AnswerStyle)
	}
	return m, e
}

// chooseFrom is choose with the settings in the store.
func (s surroundings) chooseFrom(ctx context.Context, store *state.Store, data string, m modelConfig, e endpointConfig) (
	modelConfig, endpointConfig, error) {
	c, err := readChosen(ctx, store)
	if err == nil {
		m, e = s.choose(c.Choices, data, m, e)
	}
	return m, e, err
}

// styleRules returns instructions to the model about the form of its answers.
func (c modelConfig) styleRules() string {
	wishes := map[string]string{
		"brief":    "Be brief: one to three sentences.",
		"detailed": "Be detailed: give all conditions, numbers and exceptions that the evidence has.",
		"list":     "Write a list with one point in each item.",
	}[c.AnswerStyle]
	if c.AnswerLanguage != "" {
		wishes = "Write in " + c.AnswerLanguage + ". " + wishes
	}
	return strings.TrimSpace(wishes)
}

// The key of an endpoint chosen on the page is in a separate file, named by the endpoint, so it
// cannot be sent to another endpoint.

func keyFile(data, baseURL string) string {
	sum := sha256.Sum256([]byte(baseURL))
	return filepath.Join(data, "model-key-"+hex.EncodeToString(sum[:8]))
}

// storeKey stores the key of an endpoint in a file that only its owner may read. An empty key
// removes the file.
func storeKey(data, baseURL, key string) (err error) {
	if data == "" {
		return errors.New("storing the key: there is no data directory: name one with --data")
	}
	file := keyFile(data, baseURL)
	if key != "" {
		err = writeWhole(file, ".model-key-*", 0o600, []byte(key+"\n"), time.Now())
	} else if err = os.Remove(file); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("storing the key: %w", err)
	}
	return nil
}
