package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ibid/retrieve/local"
)

// upkeepConfig is what the commands that look after a library share.
type upkeepConfig struct {
	placeConfig
	JSON bool `help:"Print a JSON object." name:"json"`
}

// explain says what to do when nothing is stored, or it cannot be read.
func (c upkeepConfig) explain(err error) error {
	if errors.Is(err, local.ErrDamaged) {
		return &exitError{exitDamage, err}
	}
	if info, missing := os.Stat(c.Data); missing == nil && !info.IsDir() {
		return usageError("%s is a file: name a data directory with --data", c.Data)
	}
	if _, missing := os.Stat(filepath.Join(c.Data, local.FileName)); errors.Is(missing, fs.ErrNotExist) {
		return usageError("there is no library in %s: name its data directory with --data, or make one with 'ibid ingest FOLDER'", c.Data)
	}
	return err
}

type verifyCmd struct{ upkeepConfig }

// Run checks a data directory and changes nothing.
func (c *verifyCmd) Run(ctx context.Context, s surroundings) error {
	if err := c.needData("verify"); err != nil {
		return err
	}
	r, err := local.Verify(ctx, c.Data, local.Options{}, progressLines(s.stderr, "checked"))
	if err != nil {
		return c.explain(err)
	}
	return c.show(s, r, "", "no damage in %s", c.Data)
}

type backupCmd struct {
	File string `arg:"" help:"File to make. It is used by naming it ibid.db in a folder of its own and giving that folder with --data."`
	upkeepConfig
}

// Run copies a data directory's library into one file.
func (c *backupCmd) Run(ctx context.Context, s surroundings) error {
	if err := c.needData("backup"); err != nil {
		return err
	}
	r, err := local.Backup(ctx, c.Data, c.File, local.Options{}, progressLines(s.stderr, "checked"))
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, local.ErrTarget):
		return usageError("%w", err)
	case err != nil:
		return c.explain(err)
	}
	return c.show(s, r, c.File, "backed up to %s", c.File)
}

type compactCmd struct{ upkeepConfig }

// Run gives the space of deleted documents back.
func (c *compactCmd) Run(ctx context.Context, s surroundings) error {
	if err := c.needData("compact"); err != nil {
		return err
	}
	before, after, err := local.Compact(ctx, c.Data, local.Options{})
	if err != nil {
		return c.explain(err)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(struct {
			Data   string `json:"data"`
			Before int64  `json:"bytes_before"`
			After  int64  `json:"bytes_after"`
		}{c.Data, before, after})
	}
	_, err = fmt.Fprintf(s.stdout, "%s: %s, was %s\n", printable(filepath.Join(c.Data, local.FileName)), megabytes(after), megabytes(before))
	return err
}

// show prints what a check has found: exit code 4 when that is damage.
func (c upkeepConfig) show(s surroundings, r local.Report, file, well string, args ...any) error {
	if c.JSON {
		type damage struct {
			Document string `json:"document,omitempty"`
			Reason   string `json:"reason"`
		}
		damaged := make([]damage, len(r.Damaged))
		for i, d := range r.Damaged {
			damaged[i] = damage(d)
		}
		err := json.NewEncoder(s.stdout).Encode(struct {
			Data      string   `json:"data"`
			File      string   `json:"file,omitempty"`
			Documents int      `json:"documents"`
			Chunks    int      `json:"chunks"`
			Bytes     int64    `json:"bytes"`
			Damaged   []damage `json:"damaged"`
		}{c.Data, file, r.Documents, r.Chunks, r.Bytes, damaged})
		if err != nil {
			return err
		}
	} else {
		line := fmt.Sprintf(well, args...)
		if len(r.Damaged) > 0 && file == "" {
			line = "damage in " + c.Data
		}
		_, err := fmt.Fprintf(s.stdout, "%s: %s whole, %s, %s\n", printable(line), counted(r.Documents, "document"), counted(r.Chunks, "chunk"), megabytes(r.Bytes))
		if err != nil {
			return err
		}
		for _, d := range r.Damaged {
			line := strings.TrimPrefix(d.Document+": "+d.Reason, ": ")
			if _, err := fmt.Fprintf(s.stdout, "damaged  %s\n", printable(line)); err != nil {
				return err
			}
		}
	}
	if len(r.Damaged) > 0 {
		return &exitError{code: exitDamage}
	}
	return nil
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// progressLines gives a function that says, every tenth of a long way, how far it is.
func progressLines(out io.Writer, what string) func(done, total int) {
	last := 0
	return func(done, total int) {
		if tenth := done * 10 / max(total, 1); total >= 1000 && tenth != last {
			last = tenth
			fmt.Fprintf(out, "%s %d of %d documents\n", what, done, total)
		}
	}
}
