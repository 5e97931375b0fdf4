// SPDX-License-Identifier: Apache-2.0

// Command report reads the benchmarks' output of several rounds, and prints
// BENCHMARKS.md. It writes the charts into the folder that -charts names. Lines of the form "module: PATH VERSION" and "load: TEXT" name
// the compared modules and the machine's load when the run began.
package main

import (
	"bufio"
	"errors"
	"flag"
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
	charts := flag.String("charts", "", "the folder of the charts, which exists")
	flag.Parse()
	if *charts == "" {
		return errors.New("-charts DIR is missing: the page shows the charts")
	}
	r, err := parse(os.Stdin)
	if err != nil {
		return err
	}
	if err := r.writeCharts(*charts); err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	p := &page{out: out, results: r, goVersion: runtime.Version(), cores: runtime.NumCPU(), date: time.Now()}
	if err := p.write(); err != nil {
		return err
	}
	return out.Flush()
}
