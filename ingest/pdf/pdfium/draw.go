package pdfium

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"

	"ibid/ingest/pdf"
)

// Limits of a file and a drawn page.
const (
	maxPixels  = 12 << 20 // about an A4 page at 350 dpi
	maxDPI     = 400
	maxChars   = 200_000  // per page
	maxRects   = 1000     // per part of a quote
	maxPreface = 64 << 10 // bytes that other programs write before a file, such as mail headers
)

// A Rect is a rectangle in fractions of the page's width and height, from the upper left corner.
type Rect struct{ X0, Y0, X1, Y1 float64 }

// A Drawing is a drawn page.
type Drawing struct {
	PNG []byte
	// Marked are the rectangles of the quote, at most one per line.
	Marked []Rect
}

// DrawOptions configure [Engine.Draw].
type DrawOptions struct {
	Page  int    // from 1
	Quote string // to mark, or ""
	// Width is the width in pixels; 0 to use DPI.
	Width int
	DPI   int // dots per inch
}

// Draw draws a page with at most 400 dots per inch and 12 million pixels. Parts of the quote that
// it doesn't find stay unmarked.
func (e *Engine) Draw(data []byte, o DrawOptions) (_ *Drawing, err error) {
	p, err := e.start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	page, err := p.load(data, o.Page)
	if err != nil {
		return nil, p.errorOr(err)
	}
	img, err := p.paint(page, o)
	if err != nil {
		return nil, p.errorOr(err)
	}
	out := new(Drawing)
	if o.Quote != "" {
		out.Marked = p.find(page, o.Quote)
	}
	for _, r := range out.Marked {
		markRect(img, r)
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&b, img); err != nil {
		return nil, fmt.Errorf("drawing page %d: %w", o.Page, err)
	}
	out.PNG = b.Bytes()
	return out, nil
}

// errorOr returns the error of the calls so far, or else err.
func (p *instance) errorOr(err error) error {
	if p.err != nil {
		return fmt.Errorf("PDFium failed on it: %w", p.err)
	}
	return err
}

// load opens a file and one of its pages.
func (p *instance) load(data []byte, number int) (page uint64, err error) {
	if start := bytes.Index(data[:min(len(data), maxPreface)], []byte("%PDF-")); start > 0 {
		data = data[start:] // PDFium searches only the first kilobyte
	}
	at := p.do("malloc", uint64(len(data)))
	if at == 0 || !p.module.Memory().Write(uint32(at), data) {
		return 0, fmt.Errorf("PDFium needs more than %d MB of memory for it", maxMemory>>20)
	}
	file := p.do("FPDF_LoadMemDocument64", at, uint64(len(data)), 0)
	if file == 0 {
		switch p.do("FPDF_GetLastError") { // see fpdfview.h
		case 4:
			return 0, pdf.ErrEncrypted
		case 5:
			return 0, errors.New("it is encrypted in a way that is not supported: save it without encryption")
		}
		return 0, errors.New("it is damaged: it has no pages")
	}
	if pages := int(int32(p.do("FPDF_GetPageCount", file))); number < 1 || number > pages {
		return 0, fmt.Errorf("there is no page %d: the document has %d", number, pages)
	}
	if page = p.do("FPDF_LoadPage", file, uint64(number-1)); page == 0 {
		return 0, fmt.Errorf("page %d is damaged", number)
	}
	return page, nil
}

// paint draws a page.
func (p *instance) paint(page uint64, o DrawOptions) (*image.RGBA, error) {
	wide, high := math.Float64frombits(p.do("FPDF_GetPageWidth", page)), math.Float64frombits(p.do("FPDF_GetPageHeight", page))
	if !(wide >= 1 && high >= 1 && wide < 1e5 && high < 1e5) {
		return nil, fmt.Errorf("page %d has no size", o.Page)
	}
	scale := float64(max(o.DPI, 10)) / 72
	if o.Width > 0 {
		scale = float64(o.Width) / wide
	}
	scale = min(scale, maxDPI/72., math.Sqrt(maxPixels/(wide*high)))
	w, h := max(int(math.Round(wide*scale)), 1), max(int(math.Round(high*scale)), 1)
	const bgra, annotations, reverseBytes, white = 4, 0x01, 0x10, 0xffffffff
	bitmap := p.do("FPDFBitmap_CreateEx", uint64(w), uint64(h), bgra, 0, 0)
	if bitmap == 0 {
		return nil, fmt.Errorf("there is not enough memory to draw page %d", o.Page)
	}
	p.do("FPDFBitmap_FillRect", bitmap, 0, 0, uint64(w), uint64(h), white)
	p.do("FPDF_RenderPageBitmap", bitmap, page, 0, 0, uint64(w), uint64(h), 0, annotations|reverseBytes)
	stride, buffer := int(uint32(p.do("FPDFBitmap_GetStride", bitmap))), uint32(p.do("FPDFBitmap_GetBuffer", bitmap))
	pixels, ok := p.module.Memory().Read(buffer, uint32(stride*h))
	if p.err != nil || stride < 4*w || !ok {
		return nil, fmt.Errorf("page %d cannot be drawn", o.Page)
	}
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		copy(img.Pix[y*img.Stride:], pixels[y*stride:y*stride+4*w])
	}
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 0xff
	}
	return img, nil
}

// markRect multiplies a rectangle by a colour, like a highlighter.
func markRect(img *image.RGBA, r Rect) {
	const red, green, blue = 255, 226, 74
	w, h := float64(img.Rect.Dx()), float64(img.Rect.Dy())
	area := image.Rect(int(r.X0*w)-1, int(r.Y0*h)-1, int(math.Ceil(r.X1*w))+1, int(math.Ceil(r.Y1*h))+1).Intersect(img.Rect)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			p := img.Pix[img.PixOffset(x, y):]
			for i, c := range [...]int{red, green, blue} {
				p[i] = uint8(int(p[i]) * c / 255)
			}
		}
	}
}

// find returns the rectangles of a quote on a page.
func (p *instance) find(page uint64, quote string) (out []Rect) {
	text := p.do("FPDFText_LoadPage", page)
	n := min(int(int32(p.do("FPDFText_CountChars", text))), maxChars)
	unicode := p.function("FPDFText_GetUnicode")
	var chars []rune
	for i := range n {
		chars = append(chars, rune(p.call(unicode, text, uint64(i))))
	}
	for _, part := range locate(chars, quote) {
		for i := range min(p.do("FPDFText_CountRects", text, uint64(part.from), uint64(part.to-part.from)), maxRects) {
			r, ok := p.rect(page, text, i)
			// PDFium returns a rectangle per drawn piece; join them into lines.
			if n := len(out); ok && n > 0 && out[n-1].continues(r) {
				last := &out[n-1]
				*last = Rect{min(last.X0, r.X0), min(last.Y0, r.Y0), max(last.X1, r.X1), max(last.Y1, r.Y1)}
			} else if ok {
				out = append(out, r)
			}
		}
	}
	return out
}

// continues reports whether next continues r's line.
func (r Rect) continues(next Rect) bool {
	high := max(r.Y1-r.Y0, next.Y1-next.Y0)
	shared := min(r.Y1, next.Y1) - max(r.Y0, next.Y0)
	gap := next.X0 - r.X1
	return shared >= 0.5*min(r.Y1-r.Y0, next.Y1-next.Y0) && gap > -high && gap < 1.5*high
}

// rect returns rectangle i of the characters last passed to FPDFText_CountRects.
func (p *instance) rect(page, text, i uint64) (r Rect, ok bool) {
	const whole = 1 << 20 // width and height of the page in device units
	at, memory := uint64(p.scratch), p.module.Memory()
	// Left, top, right and bottom in points.
	if p.do("FPDFText_GetRect", text, i, at, at+8, at+16, at+24) == 0 {
		return r, false
	}
	var x, y [2]float64
	for k := range uint32(2) {
		left, _ := memory.ReadUint64Le(p.scratch + 16*k)
		top, _ := memory.ReadUint64Le(p.scratch + 16*k + 8)
		p.do("FPDF_PageToDevice", page, 0, 0, whole, whole, 0, left, top, at+32, at+36)
		px, _ := memory.ReadUint32Le(p.scratch + 32)
		py, _ := memory.ReadUint32Le(p.scratch + 36)
		x[k], y[k] = float64(int32(px))/whole, float64(int32(py))/whole
	}
	return Rect{min(x[0], x[1]), min(y[0], y[1]), max(x[0], x[1]), max(y[0], y[1])}, p.err == nil
}
