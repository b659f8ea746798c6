package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/retrieve"
)

// pointsKey is the key of the codePoints in the context of a request.
const pointsKey = "points"

// withCodePoints adds offsets in code points to replies and events if the query has chars=1.
func (l *catalog) withCodePoints(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.QueryParam("chars") == "1" {
			c.Set(pointsKey, &codePoints{ctx: c.Request().Context(), library: l, texts: map[string]string{}})
		}
		return next(c)
	}
}

// codePoints adds to each offset in bytes one in code points: text_start_chars to text_start,
// and so on.
type codePoints struct {
	ctx     context.Context
	library Library
	texts   map[string]string // of the documents read so far, by id
	answer  string            // the answer's text so far
}

// add returns the data of an event or a reply with the added offsets.
func (p *codePoints) add(data []byte) ([]byte, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading a reply again: %w", err)
	}
	if err := p.walk(v, ""); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// addTo returns the data of an event with the added offsets. It must be called for all events
// in order.
func (p *codePoints) addTo(e event) ([]byte, error) {
	if e.kind == "text" {
		piece, err := decodeStored[answer.Text](e.data)
		if err != nil {
			return nil, err
		}
		p.answer += piece.Text
	}
	return p.add(e.data)
}

// walk adds the offsets to all objects in a value. id is the document that the value is
// about, if any.
func (p *codePoints) walk(v any, id string) error {
	if list, ok := v.([]any); ok {
		for _, item := range list {
			if err := p.walk(item, id); err != nil {
				return err
			}
		}
	}
	object, _ := v.(map[string]any)
	text, _ := object["text"].(string)
	words, quoted := object["quote"].(string)
	if !quoted {
		words = text
	}
	if named, ok := object["document"].(string); ok {
		id = named
	}
	if _, whole := object["answered"]; whole {
		p.answer = text
	}
	addCodePoints(object, "text_start", "text_end", p.answer)
	if err := p.addInDocument(object, id, words); err != nil {
		return err
	}
	for name, member := range object {
		in := text // the text that the offsets of marks refer to
		switch name {
		case "places":
			in = p.answer
		case "marks":
		default:
			if err := p.walk(member, id); err != nil {
				return err
			}
			continue
		}
		list, _ := member.([]any)
		for _, place := range list {
			addCodePoints(place, "start", "end", in)
		}
	}
	return nil
}

// addInDocument adds offsets in a document, unless the words are no longer there.
func (p *codePoints) addInDocument(object map[string]any, id, words string) error {
	_, placed := object["start"]
	_, shown := object["blocks"] // the document itself, with the offsets of its marked text
	if !placed || id == "" || words == "" && !shown {
		return nil
	}
	text, known := p.texts[id]
	if !known {
		doc, err := p.library.Document(p.ctx, id)
		if err == nil {
			text = doc.Text
		} else if !errors.Is(err, retrieve.ErrNotFound) {
			return fmt.Errorf("reading %q for its offsets: %w", id, err)
		}
		p.texts[id] = text
	}
	if from, to, ok := byteRange(object, "start", "end", text); ok && (shown || text[from:to] == words) {
		addCodePoints(object, "start", "end", text)
	}
	return nil
}

// byteRange returns two members of an object that are byte offsets into a text.
func byteRange(object map[string]any, start, end, text string) (from, to int, ok bool) {
	a, _ := object[start].(json.Number)
	b, _ := object[end].(json.Number)
	first, err1 := a.Int64()
	last, err2 := b.Int64()
	return int(first), int(last), err1 == nil && err2 == nil && 0 <= first && first <= last && last <= int64(len(text))
}

// addCodePoints adds the offsets in code points to two members of an object.
func addCodePoints(v any, start, end, text string) {
	object, _ := v.(map[string]any)
	if from, to, ok := byteRange(object, start, end, text); ok {
		n := utf8.RuneCountInString(text[:from])
		object[start+"_chars"], object[end+"_chars"] = n, n+utf8.RuneCountInString(text[from:to])
	}
}
