package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
)

// addSample uploads the sample library. It replies with the outcome for each file.
func (d *documents) addSample(c echo.Context) error {
	sample := addedSample{}
	err := fs.WalkDir(d.sample, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := d.sample.Open(name)
		if err != nil {
			return fmt.Errorf("reading the sample library: %w", err)
		}
		change, err := d.uploads.Add(c.Request().Context(), "sample/"+name, file, nil)
		if err = errors.Join(err, file.Close()); err != nil {
			return uploadProblem(err)
		}
		sample.Files = append(sample.Files, change)
		return nil
	})
	if err != nil {
		return err
	}
	return reply(c, http.StatusCreated, sample)
}

// addedSample is the reply of POST /api/sample.
type addedSample struct {
	Files []ingest.Change `json:"files"`
}
