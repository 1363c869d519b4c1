package chat

import (
	"strings"
	"unicode/utf8"
)

func filterWordWrap(in *interp, a *arguments) (Value, error) {
	return nil, runtimeErrorf("NotImplementedError", "wordwrap is not supported")
}

func filterPprint(in *interp, a *arguments) (Value, error) {
	s, err := in.repr(a.v[0])
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(s) > 80 || strings.Contains(s, "\n") {
		return nil, runtimeErrorf("NotImplementedError", "pprint of more than one line is not supported")
	}
	return Str(s), nil
}
