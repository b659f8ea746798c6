package web

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/cite"
	"ibid/cite/rewrite"
)

// citeRequest is the body of POST /api/cite. In a stream of events it is the first event, and
// each further event has a text.
type citeRequest struct {
	// Text is the text of a model.
	Text string `json:"text"`
	// Documents are the documents that the text may cite, by position: {"source","title"},
	// documents of LangChain or nodes of LlamaIndex.
	Documents json.RawMessage `json:"documents"`
	// SourceKey is the metadata key for the source.
	SourceKey string `json:"source_key,omitempty"`
	// Exclude lists the positions of documents that must not be cited.
	Exclude []int `json:"exclude,omitempty"`
	// Style is "text" (the default), "markdown", "footnote", "html" or "empty".
	Style string `json:"style,omitempty"`
	// Inline and Entry are templates of a citation and of an entry of the list,
	// instead of a style. They may contain {number}, {title}, {source} and {link}.
	Inline string `json:"inline,omitempty"`
	Entry  string `json:"entry,omitempty"`
}

// citePiece is a piece of text in a stream of events.
type citePiece struct {
	Text string `json:"text"`
}

// citePrompt is the reply of GET /api/cite.
type citePrompt struct {
	// Prompt tells a model how to cite.
	Prompt string `json:"prompt"`
}

func sendCitePrompt(c echo.Context) error { return reply(c, http.StatusOK, citePrompt{rewrite.Prompt}) }

// citeAny numbers the citations of a text from any model. It stores nothing and does not use
// the library. With events it replies while the text arrives.
func citeAny(c echo.Context) error {
	r, pieces, err := readCite(c)
	if err != nil {
		return err
	}
	rewriter, err := r.rewriter()
	if err != nil {
		return err
	}
	var out *eventStream
	if wantsEvents(c.Request()) {
		out = newEventStream(c.Response(), func(error) {})
		defer out.close()
	}
	for e, err := range rewriter.Events(pieces) {
		switch {
		case err != nil && out.hasBegun():
			return errors.Join(err, out.writeEvent("error", problemOf(c, err)))
		case err != nil:
			return err
		case out == nil && e.Done != nil:
			return reply(c, http.StatusOK, e.Done)
		case out == nil:
		case e.Cited != nil:
			err = out.writeEvent("cited", e.Cited)
		case e.Done != nil:
			err = out.writeEvent("done", e.Done)
		default:
			err = out.writeEvent("text", citePiece{e.Text})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rewriter returns the rewriter for the request's documents and style.
func (r *citeRequest) rewriter() (*rewrite.Rewriter, error) {
	documents, err := rewrite.ReadDocuments(r.Documents, r.SourceKey)
	if err != nil {
		return nil, invalidField("documents", "bad_documents", `documents is not a list such as [{"source":"a.html","title":"A"}]: %v`, err)
	}
	style := rewrite.Text
	if r.Style != "" {
		known, ok := rewrite.StyleByName(r.Style)
		if !ok {
			return nil, invalidField("style", "bad_style", "there is no style %.40q: use text, markdown, footnote, html or empty", r.Style)
		}
		style = known
	}
	if r.Inline != "" || r.Entry != "" {
		if style, err = rewrite.NewStyle(r.Inline, r.Entry); err != nil {
			return nil, invalidField("inline", "bad_style", "%v", err)
		}
	}
	for _, id := range r.Exclude {
		if id < 1 || id > len(documents) {
			return nil, invalidField("exclude", "bad_documents", "exclude has %d: the documents are numbered from 1 to %d", id, len(documents))
		}
	}
	style.Exclude = func(d rewrite.Document) bool { return slices.Contains(r.Exclude, d.ID) }
	return cite.NewRewriter(documents, style), nil
}

// readCite reads a request and the pieces of its text.
func readCite(c echo.Context) (*citeRequest, iter.Seq2[[]byte, error], error) {
	r := new(citeRequest)
	if kind, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType)); err != nil || kind != "text/event-stream" {
		body, err := readBody(c, MaxV1Body)
		if err == nil {
			err = unmarshal(body, r)
		}
		return r, func(yield func([]byte, error) bool) { yield([]byte(r.Text), nil) }, err
	}
	control := http.NewResponseController(c.Response())
	if err := ignoreUnsupported(control.EnableFullDuplex()); err != nil {
		return nil, nil, fmt.Errorf("reading the request while replying: %w", err)
	}
	lines := bufio.NewScanner(http.MaxBytesReader(c.Response(), c.Request().Body, MaxV1Body))
	lines.Buffer(nil, MaxV1Body+1)
	if more, err := nextEvent(lines, r); !more {
		return nil, nil, cmp.Or(err, error(invalid("bad_json", "the stream has no event: send an object with documents first")))
	}
	return r, func(yield func([]byte, error) bool) {
		for piece := r.Text; yield([]byte(piece), nil); {
			// A model may write slowly.
			err := ignoreUnsupported(control.SetReadDeadline(time.Now().Add(bodyTimeout)))
			var t citePiece
			more, failed := nextEvent(lines, &t)
			if err = errors.Join(err, failed); err != nil {
				yield(nil, err)
			}
			if err != nil || !more {
				return
			}
			piece = t.Text
		}
	}, nil
}

// nextEvent reads the data of the next server-sent event; more is false after the last.
func nextEvent(lines *bufio.Scanner, into any) (more bool, err error) {
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			err := unmarshal(data, into)
			return err == nil, err
		}
	}
	if lines.Err() != nil {
		err = bodyProblem(lines.Err())
	}
	return false, err
}
