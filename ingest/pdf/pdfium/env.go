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

// pageBytes is the unit by which a module's memory grows.
const pageBytes = 64 << 10

// surround provides the imports of a module: emscripten's calls back into it,
// and of the system only memory.
func surround(ctx context.Context, r wazero.Runtime, guest wazero.CompiledModule) error {
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
		builders[module].NewFunctionBuilder().WithGoModuleFunction(imported(name, f.ResultTypes()), f.ParamTypes(),
			f.ResultTypes()).Export(name)
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("preparing its imports (%s): %w", name, err)
		}
	}
	return nil
}

// imported returns the function for an import.
func imported(name string, results []api.ValueType) api.GoModuleFunc {
	switch name {
	case "emscripten_resize_heap":
		return func(_ context.Context, m api.Module, stack []uint64) {
			memory, wanted := m.Memory(), uint32(stack[0])
			stack[0] = 0
			if have := memory.Size(); wanted > have {
				if _, ok := memory.Grow((wanted - have + pageBytes - 1) / pageBytes); !ok {
					return
				}
			}
			stack[0] = 1
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
	// There are no files, clock or environment. Emscripten's system calls
	// report that by a negative number, those of WASI by a positive one.
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
