package office

func (f *file) presentation(string) error { return &OldError{"presentations are not read"} }
func (f *file) workbook(string) error     { return &OldError{"workbooks are not read"} }
func (f *file) openDocument() error       { return &OldError{"OpenDocument files are not read"} }
func (f *file) flatOpenDocument([]byte) error {
	return &OldError{"OpenDocument files are not read"}
}
func (f *file) epub() error { return &OldError{"electronic books are not read"} }
