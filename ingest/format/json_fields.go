package format

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A jsonField is a value with the path of its keys.
type jsonField struct{ path, value string }

// fields returns the values in the value that the token begins, in order. A list
// of plain values is one value.
func (r *jsonReader) fields(out []jsonField, at string, token json.Token, depth int) ([]jsonField, error) {
	if depth > maxJSONDepth {
		return nil, errTooDeep
	}
	if len(at) > maxDataPath {
		at = "…" + strings.ToValidUTF8(at[len(at)-maxDataPath:], "")
	}
	switch token {
	case json.Delim('{'):
		for r.decoder.More() {
			key, token, err := r.member()
			if err != nil {
				return nil, err
			}
			if at != "" {
				key = at + "." + key
			}
			if out, err = r.fields(out, key, token, depth+1); err != nil {
				return nil, err
			}
		}
	case json.Delim('['):
		var plain []string
		for i := 0; r.decoder.More(); i++ {
			token, err := r.decoder.Token()
			if err != nil {
				return nil, err
			}
			if _, ok := token.(json.Delim); !ok {
				if s := scalar(token); s != "" {
					plain = append(plain, s)
				}
				continue
			}
			if out, err = r.fields(out, at+"["+strconv.Itoa(i)+"]", token, depth+1); err != nil {
				return nil, err
			}
		}
		if len(plain) > 0 {
			out = append(out, jsonField{at, strings.Join(plain, ", ")})
		}
	default:
		if s := scalar(token); s != "" {
			out = append(out, jsonField{at, s})
		}
		return out, nil
	}
	_, err := r.decoder.Token()
	return out, err
}

// record writes the values of one entry on one line if they are short, else each
// on its own.
func (r *jsonReader) record(s Section, fields []jsonField) {
	r.b.begin(s, func() {
		size, lines := 0, false
		for _, f := range fields {
			size += len(f.path) + len(f.value)
			lines = lines || strings.Contains(f.value, "\n")
		}
		if size > maxRecordLine || lines {
			r.b.last = kindNone
			for _, f := range fields {
				r.field(f)
			}
			return
		}
		var names, values []string
		for _, f := range fields {
			names, values = append(names, oneLine(Clean(f.path))), append(values, f.value)
		}
		r.b.Row(names, values)
	})
}

// field writes one value after its path, a long one as a paragraph.
func (r *jsonReader) field(f jsonField) {
	text := f.value
	if f.path != "" && text != "" {
		text = f.path + ": " + text
	}
	if len(text) > 300 || strings.Contains(text, "\n") {
		r.b.Paragraph(text)
	} else {
		r.b.Item(0, "-", text)
	}
}
