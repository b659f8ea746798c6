package office

import (
	"bytes"
	"errors"
	"unicode/utf16"
)

// oleMagic begins the container of office programs before zip, still used for
// documents with a password.
const oleMagic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// oldFile returns the error for such a container, by the names of its streams.
func oldFile(data []byte) error {
	// The names are in UTF-16, in entries of 128 bytes.
	holds := func(name string) bool {
		var wide []byte
		for _, u := range utf16.Encode([]rune(name)) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		return bytes.Contains(data, append(wide, 0, 0))
	}
	switch {
	case holds("EncryptedPackage") || holds("EncryptionInfo"):
		return errors.New("it is protected with a password: save it without one")
	case holds("\tDRMContent"):
		return errors.New("it is protected by rights management (DRM): save a copy without it")
	case holds("WordDocument"):
		return &OldError{"it is in the format of Word before 2007, which is not supported: save it as .docx"}
	case holds("Workbook"), holds("Book"):
		return &OldError{"it is in the format of Excel before 2007, which is not supported: save it as .xlsx"}
	case holds("PowerPoint Document"), holds("PP40"):
		return &OldError{"it is in the format of PowerPoint before 2007, which is not supported: save it as .pptx"}
	case holds("__properties_version1.0"):
		return &OldError{"it is an Outlook message, which is not supported: save it as .eml"}
	}
	return &OldError{"it is in an old office format, which is not supported: save it as .docx, .xlsx or .pptx"}
}
