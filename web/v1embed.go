package web

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"ibid/answer/openai"
	"ibid/ingest"
)

// maxInputs is how many texts one request may have, as in OpenAI's API.
const maxInputs = 2048

// embedRequest is the body of POST /v1/embeddings.
type embedRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Format     string          `json:"encoding_format"`
	Dimensions *int            `json:"dimensions"`
}

// texts are the inputs of the request.
func (r *embedRequest) texts() ([]string, error) {
	var one string
	var many []string
	switch {
	case len(r.Input) == 0 || string(r.Input) == "null":
		return nil, badValue("input", "input is missing: give a text, or a list of texts")
	case json.Unmarshal(r.Input, &one) == nil:
		many = []string{one}
	case json.Unmarshal(r.Input, &many) != nil:
		var tokens []json.RawMessage
		if json.Unmarshal(r.Input, &tokens) == nil && len(tokens) > 0 && (tokens[0][0] == '[' || tokens[0][0] >= '0' && tokens[0][0] <= '9') {
			return nil, unsupported("input", "input has token numbers, which differ between models: send texts (in LangChain, "+
				"check_embedding_ctx_length=False)")
		}
		return nil, badValue("input", "input is neither a text nor a list of texts")
	}
	if len(many) == 0 || len(many) > maxInputs {
		return nil, badValue("input", "input has %d texts: give 1 to %d", len(many), maxInputs)
	}
	for i, text := range many {
		if text == "" {
			return nil, badValue("input", "input[%d] is empty: leave it out", i)
		}
	}
	return many, nil
}

// A v1Vector is the vector of one text: numbers, or the same numbers as base64 of
// little-endian 32-bit floats.
type v1Vector struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	Vector any    `json:"embedding"`
}

// v1Vectors is the reply of POST /v1/embeddings.
type (
	v1Vectors struct {
		Object string      `json:"object"`
		Data   []v1Vector  `json:"data"`
		Model  string      `json:"model"`
		Usage  vectorUsage `json:"usage"`
	}
	vectorUsage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
)

// embed replies with the vectors of texts, by the library's embedding model.
func (o *openAI) embed(c echo.Context) error {
	var r embedRequest
	if _, err := decodeV1(c, &r); err != nil {
		return err
	}
	if r.Model != everything && r.Model != o.embedder.Space() {
		p := noModel(r.Model)
		p.Detail = fmt.Sprintf("there is no embedding model %.200q here: use %q, or its full name %q", r.Model, everything, o.embedder.Space())
		return p
	}
	if r.Format != "" && r.Format != "float" && r.Format != "base64" {
		return badValue("encoding_format", "encoding_format is %.40q: use float or base64", r.Format)
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	rows, err := o.embedder.Embed(c.Request().Context(), texts)
	if model := (*openai.Error)(nil); errors.As(err, &model) && model.Kind == openai.Rejected {
		return relayProblem(err)
	}
	if err != nil {
		return fmt.Errorf("embedding: %w", err)
	}
	if r.Dimensions != nil && *r.Dimensions != len(rows[0]) {
		return unsupported("dimensions", "the vectors of %s have %d dimensions, not %d: leave dimensions out", o.embedder.Space(),
			len(rows[0]), *r.Dimensions)
	}
	data, tokens := make([]v1Vector, len(rows)), 0
	for i, row := range rows {
		data[i] = v1Vector{Object: "embedding", Index: i, Vector: row}
		if r.Format == "base64" {
			b := make([]byte, 0, 4*len(row))
			for _, x := range row {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			data[i].Vector = base64.StdEncoding.EncodeToString(b)
		}
		tokens += ingest.CountTokens(texts[i])
	}
	return reply(c, http.StatusOK, v1Vectors{"list", data, o.embedder.Space(), vectorUsage{tokens, tokens}})
}
