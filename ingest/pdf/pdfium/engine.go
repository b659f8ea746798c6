// Package pdfium draws pages of PDF files with PDFium, compiled to WebAssembly and
// run by wazero, so that a malicious file is confined to the memory of the
// module. PDFium itself is not part of the source: see [Code].
package pdfium

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/emscripten"
)

// maxMemory is the largest memory of a module in bytes. The memory grows by pages, and while it
// grows, two copies exist.
const (
	maxMemory = 192 << 20
	pageBytes = 64 << 10
)

// An Engine is PDFium ready for use.
type Engine struct {
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil without a cache folder
	compiled wazero.CompiledModule
}

// Open compiles PDFium's code. cache is a folder that keeps the compiled code between processes, or
// "". Compiling needs a second or two, loading a tenth of that. Since the cached code is executed,
// no other user may write there.
func Open(code []byte, cache string) (_ *Engine, err error) {
	e, ctx := &Engine{}, context.Background()
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(maxMemory / pageBytes)
	if cache != "" {
		if e.cache, err = wazero.NewCompilationCacheWithDir(cache); err != nil {
			return nil, fmt.Errorf("opening the folder for compiled code %s: %w", cache, err)
		}
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if e.compiled, err = e.runtime.CompileModule(ctx, code); err == nil {
		err = provideImports(ctx, e.runtime, e.compiled)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compiling PDFium: %w", err), e.Close())
	}
	return e, nil
}

// Close frees the memory of the engine.
func (e *Engine) Close() error {
	err := e.runtime.Close(context.Background())
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(context.Background()))
	}
	return err
}

// provideImports provides the imports of the module: emscripten's callbacks, and memory as the only
// system resource.
func provideImports(ctx context.Context, r wazero.Runtime, guest wazero.CompiledModule) error {
	exporter, err := emscripten.NewFunctionExporterForModule(guest)
	if err != nil {
		return fmt.Errorf("preparing its imports: %w", err)
	}
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range guest.ImportedFunctions() {
		module, name, _ := f.Import()
		if builders[module] == nil {
			builders[module] = r.NewHostModuleBuilder(module)
			if module == "env" {
				exporter.ExportFunctions(builders[module])
			}
		}
		if module == "env" && (strings.HasPrefix(name, "invoke_") || name == "_emscripten_throw_longjmp" ||
			name == "emscripten_notify_memory_growth") {
			continue // emscripten's own
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(importFunction(name, f.ResultTypes()), f.ParamTypes(),
			f.ResultTypes()).Export(name)
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("preparing its imports (%s): %w", name, err)
		}
	}
	return nil
}

// importFunction returns the implementation of an import.
func importFunction(name string, results []api.ValueType) api.GoModuleFunc {
	switch name {
	case "emscripten_resize_heap":
		return func(_ context.Context, m api.Module, stack []uint64) {
			memory, wanted := m.Memory(), uint32(stack[0])
			stack[0] = 1
			if have := memory.Size(); wanted > have {
				if _, ok := memory.Grow((wanted - have + pageBytes - 1) / pageBytes); !ok {
					stack[0] = 0
				}
			}
		}
	case "_emscripten_memcpy_js":
		return func(_ context.Context, m api.Module, stack []uint64) {
			from, ok := m.Memory().Read(uint32(stack[1]), uint32(stack[2]))
			if !ok || !m.Memory().Write(uint32(stack[0]), slices.Clone(from)) {
				panic(errors.New("a copy outside its memory"))
			}
		}
	case "_abort_js", "__assert_fail":
		return func(context.Context, api.Module, []uint64) { panic(errors.New("PDFium aborted")) }
	case "environ_sizes_get":
		return func(_ context.Context, m api.Module, stack []uint64) {
			m.Memory().WriteUint32Le(uint32(stack[0]), 0)
			m.Memory().WriteUint32Le(uint32(stack[1]), 0)
			stack[0] = 0
		}
	}
	// There are no files, clock or environment. Emscripten's system calls report that by a negative
	// number, WASI functions by a positive one.
	const noSystem = 52 // ENOSYS
	answer := uint64(noSystem)
	switch {
	case strings.HasPrefix(name, "__syscall_"):
		answer = uint64(uint32(0xffffffff - noSystem + 1))
	case len(results) == 1 && results[0] != api.ValueTypeI32: // the clock
		answer = 0
	}
	return func(_ context.Context, _ api.Module, stack []uint64) {
		if len(results) > 0 {
			stack[0] = answer
		}
	}
}

// An instance is PDFium for one file. After the first failure, its calls do nothing.
type instance struct {
	module  api.Module
	scratch uint32 // scratchBytes of its memory
	err     error
}

const scratchBytes = 4096

// start creates an instance. Close its module after use.
func (e *Engine) start() (*instance, error) {
	module, err := e.runtime.InstantiateModule(context.Background(), e.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("starting PDFium: %w", err)
	}
	p := &instance{module: module}
	p.do("__wasm_call_ctors")
	p.do("FPDF_InitLibraryWithConfig", 0)
	if p.scratch = uint32(p.do("malloc", scratchBytes)); p.scratch == 0 {
		return nil, errors.Join(fmt.Errorf("starting PDFium: %w", p.err), p.close())
	}
	return p, nil
}

func (p *instance) close() error { return p.module.Close(context.Background()) }

// function returns a function of PDFium.
func (p *instance) function(name string) api.Function {
	f := p.module.ExportedFunction(name)
	if f == nil && p.err == nil {
		p.err = fmt.Errorf("this build of PDFium has no %s", name)
	}
	return f
}

// do calls a function of PDFium.
func (p *instance) do(name string, args ...uint64) uint64 { return p.call(p.function(name), args...) }

func (p *instance) call(f api.Function, args ...uint64) uint64 {
	if p.err != nil {
		return 0
	}
	var stack [16]uint64
	copy(stack[:], args)
	if p.err = f.CallWithStack(context.Background(), stack[:]); p.err != nil {
		return 0
	}
	return stack[0]
}
