// Package pdfium draws pages of PDF files with PDFium, compiled to WebAssembly and
// run by wazero, so that a malicious file is confined to the memory of the
// module. PDFium itself is not part of the source: see [Code].
package pdfium

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const (
	// maxMemory is the largest memory of a module in bytes. While it grows
	// there are two copies of it.
	maxMemory = 192 << 20
	// keptMemory is the size above which an instance is not used again: its
	// memory never shrinks.
	keptMemory = 64 << 20
)

// An Engine is PDFium ready for use, by one goroutine at a time.
type Engine struct {
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil without a cache folder
	compiled wazero.CompiledModule
	module   api.Module // nil until needed, and after a failure
	calls    map[string]api.Function
	scratch  uint32 // scratchBytes of the module's memory
}

const scratchBytes = 4096

// Open compiles PDFium's code. cache is a folder that keeps the compiled code
// between processes; empty for none. Compiling needs a second or two, loading
// a tenth of that. The code in the folder is executed: nobody else may write
// there.
func Open(ctx context.Context, code []byte, cache string) (_ *Engine, err error) {
	e := &Engine{}
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(false).WithMemoryLimitPages(maxMemory / pageBytes)
	if cache != "" {
		if e.cache, err = wazero.NewCompilationCacheWithDir(cache); err != nil {
			return nil, fmt.Errorf("opening the folder for compiled code %s: %w", cache, err)
		}
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if e.compiled, err = e.runtime.CompileModule(ctx, code); err == nil {
		err = surround(ctx, e.runtime, e.compiled)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compiling PDFium: %w", err), e.Close(ctx))
	}
	return e, nil
}

// Close frees what the engine holds.
func (e *Engine) Close(ctx context.Context) error {
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// start creates an instance if there is none.
func (e *Engine) start(ctx context.Context) (err error) {
	if e.module != nil && !e.module.IsClosed() && e.module.Memory().Size() <= keptMemory {
		return nil
	}
	if e.module != nil {
		e.drop(ctx)
	}
	if e.module, err = e.runtime.InstantiateModule(ctx, e.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions()); err != nil {
		e.module = nil
		return fmt.Errorf("starting PDFium: %w", err)
	}
	e.calls = make(map[string]api.Function)
	c := e.begin(ctx)
	if e.module.ExportedFunction("__wasm_call_ctors") != nil {
		c.do("__wasm_call_ctors")
	} else {
		c.do("_initialize")
	}
	c.do("FPDF_InitLibraryWithConfig", 0)
	e.scratch = uint32(c.do("malloc", scratchBytes))
	if c.err != nil || e.scratch == 0 {
		e.drop(ctx)
		return fmt.Errorf("starting PDFium: %w", c.err)
	}
	return nil
}

// drop discards the instance, which cannot be trusted after a failure.
func (e *Engine) drop(ctx context.Context) {
	// An instance that fails to close is garbage anyway.
	_ = e.module.Close(context.WithoutCancel(ctx))
	e.module, e.calls = nil, nil
}

// A session is a series of calls. After the first failure, the rest do nothing
// and return 0.
type session struct {
	*Engine
	ctx   context.Context
	stack [16]uint64
	err   error
}

func (e *Engine) begin(ctx context.Context) *session { return &session{Engine: e, ctx: ctx} }

// do calls a function of PDFium.
func (s *session) do(name string, args ...uint64) uint64 {
	if s.err != nil {
		return 0
	}
	f, ok := s.calls[name]
	if !ok {
		if f = s.module.ExportedFunction(name); f == nil {
			s.err = fmt.Errorf("this build of PDFium has no %s", name)
			return 0
		}
		s.calls[name] = f
	}
	return s.call(s.ctx, f, args...)
}

// quick calls a short function without watching the context, which would take
// longer than the call.
func (s *session) quick(f api.Function, args ...uint64) uint64 {
	return s.call(context.Background(), f, args...)
}

func (s *session) call(ctx context.Context, f api.Function, args ...uint64) uint64 {
	if s.err != nil {
		return 0
	}
	s.stack[0] = 0
	copy(s.stack[:], args)
	if err := f.CallWithStack(ctx, s.stack[:]); err != nil {
		if s.ctx.Err() != nil {
			err = s.ctx.Err()
		}
		s.err = err
		return 0
	}
	return s.stack[0]
}

// floats64 reads numbers that a call left in memory.
func (s *session) floats64(at uint32, to []float64) {
	for i := range to {
		to[i], _ = s.module.Memory().ReadFloat64Le(at + 8*uint32(i))
	}
}

// bytes returns the bytes at an address. They belong to PDFium and are valid
// until the next call.
func (s *session) bytes(at, n uint32) []byte {
	if s.err != nil {
		return nil
	}
	b, ok := s.module.Memory().Read(at, n)
	if !ok {
		s.err = errors.New("PDFium returned an address outside its memory")
	}
	return b
}

func f64(x float64) uint64 { return math.Float64bits(x) }
