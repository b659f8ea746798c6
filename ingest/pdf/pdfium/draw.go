package pdfium

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"
)

// Limits of a drawn page.
const (
	maxPixels = 12 << 20 // about an A4 page at 350 dpi
	maxDPI    = 400
)

// A Rect is a place on a page in shares of its width and height, from the
// upper left corner.
type Rect struct{ X0, Y0, X1, Y1 float64 }

// A Drawing is a drawn page.
type Drawing struct {
	PNG []byte
	// Marked are the places of the quote, at most a line each.
	Marked []Rect
}

// DrawOptions say what is drawn.
type DrawOptions struct {
	Page  int    // from 1
	Quote string // to mark; empty for none
	// Width is the width in pixels; 0 to use DPI.
	Width int
	DPI   int // dots per inch
	Gray  bool
}

// Draw draws a page with at most 400 dots per inch and 12 million pixels. What
// it does not find of the quote stays unmarked.
func (e *Engine) Draw(ctx context.Context, data []byte, o DrawOptions) (*Drawing, error) {
	d, err := e.Load(ctx, data)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	number := o.Page
	if pages := d.Pages(); number < 1 || number > pages {
		return nil, fmt.Errorf("there is no page %d: the document has %d", number, pages)
	}
	page := d.do("FPDF_LoadPage", d.handle, uint64(number-1))
	if page == 0 {
		return nil, d.orBecause("page %d is damaged", number)
	}
	defer d.do("FPDF_ClosePage", page)
	out := new(Drawing)
	if o.Quote != "" {
		out.Marked = d.find(page, o.Quote)
	}
	painted, err := d.paint(page, o)
	if err != nil {
		return nil, err
	}
	for _, r := range out.Marked {
		mark(painted, r)
	}
	var img image.Image = painted
	if o.Gray {
		gray := image.NewGray(painted.Rect)
		draw.Draw(gray, gray.Rect, painted, image.Point{}, draw.Src)
		img = gray
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&b, img); err != nil {
		return nil, fmt.Errorf("drawing page %d: %w", number, err)
	}
	out.PNG = b.Bytes()
	return out, nil
}

// orBecause returns the error of the calls so far, or else a new one.
func (d *Document) orBecause(format string, args ...any) error {
	if d.err != nil {
		return fmt.Errorf("PDFium failed on it: %w", d.err)
	}
	return fmt.Errorf(format, args...)
}

// paint draws a page.
func (d *Document) paint(page uint64, o DrawOptions) (*image.RGBA, error) {
	number := o.Page
	wide, high := math.Float64frombits(d.do("FPDF_GetPageWidth", page)), math.Float64frombits(d.do("FPDF_GetPageHeight", page))
	if d.err != nil || !(wide >= 1 && high >= 1 && wide < 1e5 && high < 1e5) {
		return nil, d.orBecause("page %d has no size", number)
	}
	scale := float64(max(o.DPI, 10)) / 72
	if o.Width > 0 {
		scale = float64(o.Width) / wide
	}
	scale = min(scale, maxDPI/72., math.Sqrt(maxPixels/(wide*high)))
	w, h := max(int(math.Round(wide*scale)), 1), max(int(math.Round(high*scale)), 1)
	const bgra, annotations, reverseBytes, white = 4, 0x01, 0x10, 0xffffffff
	bitmap := d.do("FPDFBitmap_CreateEx", uint64(w), uint64(h), bgra, 0, 0)
	if bitmap == 0 {
		return nil, d.orBecause("there is not enough memory to draw page %d", number)
	}
	defer d.do("FPDFBitmap_Destroy", bitmap)
	d.do("FPDFBitmap_FillRect", bitmap, 0, 0, uint64(w), uint64(h), white)
	d.do("FPDF_RenderPageBitmap", bitmap, page, 0, 0, uint64(w), uint64(h), 0, annotations|reverseBytes)
	stride, buffer := int(uint32(d.do("FPDFBitmap_GetStride", bitmap))), uint32(d.do("FPDFBitmap_GetBuffer", bitmap))
	if stride < 4*w {
		return nil, d.orBecause("page %d cannot be drawn", number)
	}
	pixels := d.bytes(buffer, uint32(stride*h))
	if d.err != nil {
		return nil, d.orBecause("")
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

// mark multiplies a place with a colour, like a marker pen.
func mark(img *image.RGBA, r Rect) {
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

// find returns the places of a quote on a page.
func (d *Document) find(page uint64, quote string) []Rect {
	text := d.do("FPDFText_LoadPage", page)
	if text == 0 {
		return nil
	}
	defer d.do("FPDFText_ClosePage", text)
	var out []Rect
	for _, part := range locate(d.chars(text), quote) {
		for _, r := range d.rects(page, text, part) {
			// PDFium returns one for each drawn piece; a line is one here.
			if n := len(out); n > 0 && out[n-1].goesOn(r) {
				last := &out[n-1]
				*last = Rect{min(last.X0, r.X0), min(last.Y0, r.Y0), max(last.X1, r.X1), max(last.Y1, r.Y1)}
			} else {
				out = append(out, r)
			}
		}
	}
	return out
}

// goesOn reports whether next continues r's line.
func (r Rect) goesOn(next Rect) bool {
	high := max(r.Y1-r.Y0, next.Y1-next.Y0)
	shared := min(r.Y1, next.Y1) - max(r.Y0, next.Y0)
	gap := next.X0 - r.X1
	return shared >= 0.5*min(r.Y1-r.Y0, next.Y1-next.Y0) && gap > -high && gap < 1.5*high
}

// rects returns the places of a run of characters.
func (d *Document) rects(page, text uint64, part span) []Rect {
	const maxRects = 1000
	const whole = 1 << 20 // width and height of the page in the units of the result
	var out []Rect
	for i := range min(d.do("FPDFText_CountRects", text, uint64(part.from), uint64(part.to-part.from)), maxRects) {
		at := uint64(d.scratch)
		if d.do("FPDFText_GetRect", text, i, at, at+8, at+16, at+24) == 0 {
			continue
		}
		var box [4]float64 // left, top, right, bottom
		d.floats64(d.scratch, box[:])
		var x, y [2]float64
		for k := range 2 {
			d.do("FPDF_PageToDevice", page, 0, 0, whole, whole, 0, f64(box[2*k]), f64(box[2*k+1]), at+32, at+36)
			px, _ := d.module.Memory().ReadUint32Le(d.scratch + 32)
			py, _ := d.module.Memory().ReadUint32Le(d.scratch + 36)
			x[k], y[k] = float64(int32(px))/whole, float64(int32(py))/whole
		}
		if d.err != nil {
			return out
		}
		out = append(out, Rect{min(x[0], x[1]), min(y[0], y[1]), max(x[0], x[1]), max(y[0], y[1])})
	}
	return out
}
