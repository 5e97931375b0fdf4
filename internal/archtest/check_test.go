// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// An importing is one import declaration: which package of the module, given by
// its path below the root, imports what in which file.
type importing struct {
	pkg    string
	file   string
	target string // below the root for packages of the module, else the whole path
	own    bool   // the target is a package of the module
}

// complaint says what is forbidden about an import and why, or "".
func complaint(i importing) string {
	r, known := ruleOf(i.pkg)
	switch {
	case !known:
		return fmt.Sprintf("%s: package %s has no line in internal/archtest/rules_test.go; decide to which layer it belongs", i.file, i.pkg)
	case i.own && !matchesAny(i.target, r.may):
		return fmt.Sprintf("%s: package %s must not import %s: %s (it may import %s)", i.file, i.pkg, i.target, r.why, allowance(r.may))
	case !i.own:
		return outsideComplaint(i)
	}
	return ""
}

func outsideComplaint(i importing) string {
	t, ok := tenantOf(i.target)
	if !ok || matchesAny(i.pkg, t.only) {
		return ""
	}
	if len(t.only) == 0 {
		return fmt.Sprintf("%s: package %s must not import %s: %s (nobody may)", i.file, i.pkg, i.target, t.why)
	}
	return fmt.Sprintf("%s: package %s must not import %s: %s (only %s may)", i.file, i.pkg, i.target, t.why, strings.Join(t.only, ", "))
}

func ruleOf(path string) (rule, bool) {
	i := slices.IndexFunc(layers, func(r rule) bool { return matches(path, r.path) })
	if i < 0 {
		return rule{}, false
	}
	return layers[i], true
}

func tenantOf(path string) (dependency, bool) {
	i := slices.IndexFunc(dependencies, func(t dependency) bool {
		return matchesAny(path, t.paths) || slices.Contains(t.paths, anyModule) && !standard(path)
	})
	if i < 0 {
		return dependency{}, false
	}
	return dependencies[i], true
}

// standard reports whether path belongs to the standard library, whose paths
// alone do not start with a domain name.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func matchesAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(path, p) })
}

func matches(path, pattern string) bool {
	if below, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(path, below)
	}
	return path == pattern
}

func allowance(may []string) string {
	if len(may) == 0 {
		return "the standard library only"
	}
	return strings.Join(may, ", ")
}
