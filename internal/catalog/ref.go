package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrUnknown is the cause when a reference is neither a known name, nor a hf: reference, nor a file.
var ErrUnknown = errors.New("unknown model")

// ErrNotPulled is the cause when a model is known but its file is not on this machine.
var ErrNotPulled = errors.New("not pulled")

const hfPrefix = "hf:"

// parseHF reads hf:org/repo/file, where file may lie in folders.
func parseHF(ref string) (HF, error) {
	parts := strings.SplitN(strings.TrimPrefix(ref, hfPrefix), "/", 3)
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return HF{}, fmt.Errorf("%q: want hf:org/repo/file.gguf", ref)
	}
	for element := range strings.SplitSeq(strings.Join(parts, "/"), "/") {
		if element == "" || element == "." || element == ".." || strings.ContainsAny(element, "\\?#%") {
			return HF{}, fmt.Errorf("%q: %q cannot be part of a name on Hugging Face", ref, element)
		}
	}
	if !strings.EqualFold(path.Ext(parts[2]), ".gguf") {
		return HF{}, fmt.Errorf("%q: not a .gguf file", ref)
	}
	return HF{Repo: parts[0] + "/" + parts[1], File: parts[2]}, nil
}

// looksLikePath tells whether a reference can only be meant as a path.
func looksLikePath(ref string) bool {
	return strings.ContainsRune(ref, filepath.Separator) || strings.ContainsRune(ref, '/') ||
		strings.EqualFold(filepath.Ext(ref), ".gguf") || strings.HasPrefix(ref, "~")
}

// checkFile accepts a path to a regular file.
func checkFile(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "~"):
		return fmt.Errorf("%w (the shell did not expand ~; write $HOME)", err)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file", name)
	}
	return nil
}

// unknown says that ref names nothing, which names are near, and what a reference may be.
func unknown(ref string, names []string) error {
	hint := "quire list shows the names; a path to a .gguf file or hf:org/repo/file.gguf works too"
	if near := nearest(ref, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("%w %q; %s", ErrUnknown, ref, hint)
}

// nearest returns the name that is most like ref, or "" when none is like it.
func nearest(ref string, names []string) string {
	ref = strings.ToLower(ref)
	best, bestDistance := "", len(ref)/3+1 // at most a third may be wrong
	for _, name := range names {
		lower := strings.ToLower(name)
		distance := editDistance(ref, lower)
		if len(ref) >= 4 && strings.HasPrefix(lower, ref) {
			distance = 1
		}
		if distance < bestDistance || distance == bestDistance && best == "" {
			best, bestDistance = name, distance
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes between a and b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: distance of the part of a done so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(diagonal+cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
