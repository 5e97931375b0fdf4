// Command report reads the benchmarks' output, several rounds of it, and prints
// BENCHMARKS.md. Lines of the form "module: PATH VERSION" and "load: TEXT" name
// the modules compared and the machine's load when the run began.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run() error {
	r, err := parse(os.Stdin)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	p := &page{out: out, results: r, goVersion: runtime.Version(), cores: runtime.NumCPU(), date: time.Now()}
	if err := p.write(); err != nil {
		return err
	}
	return out.Flush()
}
