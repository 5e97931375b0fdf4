// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// claimVar is set in the process that claims all ports of a range but one.
const claimVar = "SHARDID_TEST_CLAIM"

// few is a range that no server is in.
var few = portRange{1, 3}

// claimAndWait claims all ports of the range but one, prints them, and keeps them until
// its standard input ends.
func claimAndWait(t *testing.T) {
	t.Helper()
	for range few.count - 1 {
		port, err := claims.claim(few)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintln(os.Stdout, port)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAPortBelongsToOneProcessUntilItEnds(t *testing.T) {
	if os.Getenv(claimVar) != "" {
		claimAndWait(t)
		return
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), claimVar+"=1")
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	theirs := map[int]bool{}
	lines := bufio.NewReader(stdout)
	for range few.count - 1 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("the other process: %s", line)
		}
		theirs[port] = true
	}

	ours, err := claims.claim(few)
	if err != nil {
		t.Fatal(err)
	}
	defer claims.release(ours)
	if theirs[ours] {
		t.Errorf("port %d is claimed by two processes", ours)
	}
	if port, err := claims.claim(few); err == nil {
		claims.release(port)
		t.Errorf("port %d was claimed while all were", port)
	}

	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	port, err := claims.claim(few)
	if err != nil {
		t.Errorf("the ports of a process that has ended are still claimed: %v", err)
	}
	claims.release(port)
}

func TestAPortThatIsReleasedCanBeClaimed(t *testing.T) {
	one := portRange{9, 1}
	for range 3 {
		port, err := claims.claim(one)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := claims.claim(one); err == nil {
			t.Errorf("port %d was claimed twice by one process", again)
		}
		claims.release(port)
		claims.release(port) // releases nothing
	}
}
