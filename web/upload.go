package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
)

// Uploads stores documents that people send; [ingest.Uploads] is one. An
// upload's name is its document's path.
type Uploads interface {
	Add(ctx context.Context, name string, content io.Reader) (ingest.Change, error)
	Reread(ctx context.Context, name string) (ingest.Change, error)
	Remove(ctx context.Context, name string) error
}

// uploadsRoot is the root of the documents that were uploaded.
const uploadsRoot = "uploads"

// add stores one file: the body of the request, named by ?name=, or the only file
// of a form.
func (d *documents) add(c echo.Context) error {
	// A folder has one collection, and the uploads are one folder.
	if in := c.QueryParam("collection"); in != "" && in != d.catalog.uploads {
		return invalidField("collection", "wrong_collection", "uploads are added to the collection %q, not to %.200q: "+
			"ingest a folder into that, or start the server with --collection", d.catalog.uploads, in)
	}
	name, content, form, err := uploaded(c)
	if err != nil {
		return err
	}
	change, err := d.uploads.Add(c.Request().Context(), name, content)
	if err != nil {
		return uploadProblem(err)
	}
	for form != nil {
		if part, err := form.NextPart(); err != nil {
			break // the end
		} else if part.FileName() != "" {
			return invalid("one_file", "there are several files in the form, and only %q was stored: send each in a request of its own", name)
		}
	}
	status := http.StatusOK
	if change.Action == ingest.Added {
		status = http.StatusCreated
	}
	c.Response().Header().Set(echo.HeaderLocation, Link(d.pages.prefix(), change.Document, 0, 0))
	return reply(c, status, change)
}

// uploaded returns the file's name and its content as it arrives, and the form that
// it is in, if any.
func uploaded(c echo.Context) (name string, content io.Reader, form *multipart.Reader, err error) {
	r := c.Request()
	kind, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		if name = c.QueryParam("name"); name == "" {
			return "", nil, nil, invalid("no_name", "the file has no name: give it in the query (?name=report.pdf), or send the file in a form")
		}
		return name, r.Body, nil, nil
	}
	if form, err = r.MultipartReader(); err != nil {
		return "", nil, nil, invalid("bad_form", "the form cannot be read: %v", err)
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return "", nil, nil, invalid("no_file", "there is no file in the form: send it as multipart/form-data with a file name")
		}
		if err != nil {
			return "", nil, nil, invalid("bad_form", "the form cannot be read: %v", err)
		}
		if name = part.FileName(); name != "" {
			return name, part, form, nil
		}
	}
}

func uploadProblem(err error) error {
	var skip *ingest.SkipError
	var unreadable *ingest.UnreadableError
	p := &Problem{cause: err}
	switch {
	case errors.Is(err, ingest.ErrUploadName):
		p.Status, p.Code = http.StatusBadRequest, "bad_name"
	case errors.Is(err, ingest.ErrUploadSize):
		p.Status, p.Code = http.StatusRequestEntityTooLarge, "file_too_large"
	case errors.Is(err, ingest.ErrUploadSpace):
		p.Status, p.Code = http.StatusInsufficientStorage, "no_room"
	case errors.As(err, &skip):
		p.Status, p.Code = http.StatusUnsupportedMediaType, "unsupported_format"
	case errors.As(err, &unreadable):
		p.Status, p.Code = http.StatusUnprocessableEntity, "unreadable_file"
	default:
		return fmt.Errorf("storing an upload: %w", err)
	}
	p.Detail = err.Error()
	return p
}

// uploadName returns the name of the upload that an address spells.
func uploadName(c echo.Context) (string, error) {
	id, _, err := parseLink(c.Request().URL, "/api/documents/")
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(id, uploadsRoot+"/")
	if !ok {
		return "", &Problem{Status: http.StatusForbidden, Code: "not_an_upload",
			Detail: fmt.Sprintf("%.200q was not uploaded: change or delete the file in its folder", id)}
	}
	return name, nil
}

func changeProblem(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return &Problem{Status: http.StatusNotFound, Code: "document_not_found", cause: err,
			Detail: fmt.Sprintf("there is no upload %.200q: it may have been deleted", name)}
	}
	return uploadProblem(err)
}

func (d *documents) reread(c echo.Context) error {
	name, err := uploadName(c)
	if err != nil {
		return err
	}
	change, err := d.uploads.Reread(c.Request().Context(), name)
	if err != nil {
		return changeProblem(name, err)
	}
	return reply(c, http.StatusOK, change)
}

func (d *documents) remove(c echo.Context) error {
	name, err := uploadName(c)
	if err != nil {
		return err
	}
	if err := d.uploads.Remove(c.Request().Context(), name); err != nil {
		return changeProblem(name, err)
	}
	return c.NoContent(http.StatusNoContent)
}
