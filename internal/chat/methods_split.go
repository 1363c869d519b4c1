package chat

import (
	"strings"
	"unicode/utf8"
)

// splitMethods are the str methods that take strings apart or join them.
func splitMethods() map[string]*native {
	return map[string]*native{
		"split":      fn("sep? maxsplit?", splitMethod(false)),
		"rsplit":     fn("sep? maxsplit?", splitMethod(true)),
		"splitlines": fn("keepends?", splitLinesMethod),
		"partition":  fn("/ sep", partition(false)),
		"rpartition": fn("/ sep", partition(true)),
		"join":       fn("/ iterable", joinMethod),
		"strip":      fn("/ chars?", stripMethod(true, true)),
		"lstrip":     fn("/ chars?", stripMethod(true, false)),
		"rstrip":     fn("/ chars?", stripMethod(false, true)),
	}
}

func (in *interp) strings(self Value, parts []string) (Value, error) {
	if err := in.build(int64(len(parts)) * elementBytes); err != nil {
		return nil, err
	}
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = like(self, p)
	}
	return &List{items}, nil
}

func splitMethod(right bool) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		limit, err := wantInt(a.or(1, Int(-1)))
		if err != nil {
			return nil, err
		}
		if limit < 0 {
			limit = 1 << 40
		}
		s := a.selfText()
		if a.or(0, None{}) == (None{}) {
			if err := in.build(int64(countFunc(s, isSpace)+1) * elementBytes); err != nil {
				return nil, err
			}
			return in.strings(a.self, splitSpaces(s, limit, right))
		}
		sep, err := wantString(a.v[0], "split() separator")
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, valueErrorf("empty separator")
		}
		n := int64(strings.Count(s, sep))
		if err := in.build(int64(len(s)) + min(n, limit)*elementBytes); err != nil {
			return nil, err
		}
		if n <= limit || !right {
			return in.strings(a.self, strings.SplitN(s, sep, int(min(n, limit))+1))
		}
		return in.strings(a.self, splitRight(s, sep, int(limit)))
	}
}

// splitRight splits at the last n separators.
func splitRight(s, sep string, n int) []string {
	parts := make([]string, n+1)
	for i := n; i > 0; i-- {
		at := strings.LastIndex(s, sep)
		parts[i] = s[at+len(sep):]
		s = s[:at]
	}
	parts[0] = s
	return parts
}

// splitSpaces splits at runs of white space, of which none is left at the ends.
func splitSpaces(s string, limit int64, right bool) []string {
	parts := []string{}
	if !right {
		for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
			end := strings.IndexFunc(s, isSpace)
			if int64(len(parts)) >= limit || end < 0 {
				if int64(len(parts)) < limit {
					s = strings.TrimRightFunc(s, isSpace)
				}
				return append(parts, s)
			}
			parts = append(parts, s[:end])
			s = s[end:]
		}
		return parts
	}
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		at := strings.LastIndexFunc(s, isSpace)
		if int64(len(parts)) >= limit || at < 0 {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		parts = append(parts, s[at+n:])
		s = s[:at]
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

func splitLinesMethod(in *interp, a *arguments) (Value, error) {
	s := a.selfText()
	if err := in.build(int64(countFunc(s, isLineEnd)+1) * elementBytes); err != nil {
		return nil, err
	}
	return in.strings(a.self, splitLines(s, truth(a.or(0, Bool(false)))))
}

// splitLines is Python's splitlines, which knows more line ends than \n.
func splitLines(s string, keep bool) []string {
	lines := []string{}
	for s != "" {
		end := strings.IndexFunc(s, isLineEnd)
		if end < 0 {
			return append(lines, s)
		}
		_, n := utf8.DecodeRuneInString(s[end:])
		if strings.HasPrefix(s[end:], "\r\n") {
			n = 2
		}
		if keep {
			lines = append(lines, s[:end+n])
		} else {
			lines = append(lines, s[:end])
		}
		s = s[end+n:]
	}
	return lines
}

// anyOf tells of a character whether it is in set.
func anyOf(set string) func(rune) bool {
	if len(set) < 16 {
		return func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	members := map[rune]bool{}
	for _, r := range set {
		members[r] = true
	}
	return func(r rune) bool { return members[r] }
}

func countFunc(s string, ok func(rune) bool) int {
	n := 0
	for _, r := range s {
		if ok(r) {
			n++
		}
	}
	return n
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

func partition(right bool) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		sep, err := wantString(a.v[0], "separator")
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, valueErrorf("empty separator")
		}
		s := a.selfText()
		at := strings.Index(s, sep)
		parts := [3]string{s, "", ""}
		if right {
			at = strings.LastIndex(s, sep)
			parts = [3]string{"", "", s}
		}
		if at >= 0 {
			parts = [3]string{s[:at], sep, s[at+len(sep):]}
		}
		out := make(tuple, len(parts))
		for i, p := range parts {
			out[i] = like(a.self, p)
		}
		return out, in.scan(len(s))
	}
}

func joinMethod(in *interp, a *arguments) (Value, error) {
	items, err := in.collect(a.v[0])
	if err != nil {
		if errorType(err) == "TypeError" {
			return nil, typeErrorf("can only join an iterable")
		}
		return nil, err
	}
	_, safe := a.self.(markup)
	texts := make([]string, len(items))
	for i, item := range items {
		if safe {
			m, err := in.escape(item)
			if err != nil {
				return nil, err
			}
			texts[i] = string(m)
			continue
		}
		s, ok := asString(item)
		if !ok {
			return nil, typeErrorf("sequence item %d: expected str instance, %s found", i, item.typeName())
		}
		texts[i] = s
	}
	s, err := in.joinStrings(texts, a.selfText())
	return like(a.self, s), err
}

func stripMethod(left, right bool) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		return in.strip(a.self, a.or(0, None{}), left, right)
	}
}

// strip takes white space, or any of the given characters, off the ends of a string.
func (in *interp) strip(v, chars Value, left, right bool) (Value, error) {
	s, _ := asString(v)
	cut := isSpace
	if chars != (None{}) {
		set, ok := asString(chars)
		if !ok {
			return nil, typeErrorf("strip arg must be None or str")
		}
		if err := in.build(int64(len(set)) * elementBytes); err != nil {
			return nil, err
		}
		cut = anyOf(set)
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	text, _ := asString(v)
	return like(v, s), in.scan(len(text))
}
