package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
)

// TokenizerFile is the name of the file with the vocabulary, in Hugging Face's format, for parts
// whose weights have no vocabulary. Some packages prefix it with the model's name.
const TokenizerFile = "tokenizer.json"

const weightsFile = "model.safetensors"

// Make writes the model file of a part from the contents of the files of its checkpoint. It returns
// an error if the weights or words are not the part's.
func (p Part) Make(to io.Writer, weights, tokenizer []byte) error {
	var words []string
	if p.Vocabulary != "" {
		var err error
		if words, err = readWords(tokenizer); err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(strings.Join(words, "\n") + "\n"))
		if hex.EncodeToString(sum[:]) != p.Vocabulary {
			return fmt.Errorf("this is not the vocabulary of %s: its SHA-256 is %x instead of %s", p.Name, sum, p.Vocabulary)
		}
	}
	if sum := sha256.Sum256(weights); hex.EncodeToString(sum[:]) != p.Weights {
		return fmt.Errorf("these are not the weights of %s: their SHA-256 is %x instead of %s", p.Name, sum, p.Weights)
	}
	return convert(to, p.Facts, path.Ext(p.File), weights, words)
}

// readWords returns the vocabulary in a tokenizer file, ordered by id.
func readWords(tokenizer []byte) ([]string, error) {
	var file struct {
		Model struct {
			Vocabulary map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(tokenizer, &file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", TokenizerFile, err)
	}
	words := make([]string, len(file.Model.Vocabulary))
	for word, id := range file.Model.Vocabulary {
		if id < 0 || id >= len(words) || words[id] != "" {
			return nil, fmt.Errorf("%s gives the id %d to %q and to another word, or skips one", TokenizerFile, id, word)
		}
		words[id] = word
	}
	return words, nil
}
