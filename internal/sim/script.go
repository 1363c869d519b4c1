package sim

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A script is a play for the scheduler in the format of datadriven tests: commands, a line "----", and what they print,
// up to a blank line. Lines that begin with # are comments. docs/simulation.md lists the commands.

// scriptCase is one block of a script: commands and the output they should have.
type scriptCase struct {
	lead     string   // comments and blank lines before it, kept by rewriting
	commands []string // one a line
	input    string   // as written
	want     string
	line     int
}

// ScriptFault is a block of a script whose output is not what is written.
type ScriptFault struct {
	Line      int
	Input     string
	Want, Got string
}

// Error shows both outputs.
func (f *ScriptFault) Error() string {
	return fmt.Sprintf("line %d: %s\n  got:\n%s  want:\n%s", f.Line, strings.TrimSpace(f.Input), indent(f.Got), indent(f.Want))
}

func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// RunScript runs a script. It returns the script with the outputs it really has, and the joined faults of the blocks
// whose outputs differ from what is written.
func RunScript(src []byte) (rewritten []byte, err error) {
	cases, tail, err := parseScript(src)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	var faults []error
	p := &play{}
	for _, c := range cases {
		got := p.runCase(c)
		if got != c.want {
			faults = append(faults, &ScriptFault{Line: c.line, Input: c.input, Want: c.want, Got: got})
		}
		out.WriteString(c.lead + c.input + "----\n" + got)
		if !strings.HasSuffix(got, "\n\n") {
			out.WriteString("\n")
		}
	}
	out.WriteString(tail)
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), errors.Join(faults...)
}

// parseScript cuts a script into its blocks; tail is what follows the last.
func parseScript(src []byte) (cases []scriptCase, tail string, err error) {
	var c scriptCase
	inOutput := false
	n := 0
	for line := range strings.Lines(string(src)) {
		n++
		text := strings.TrimRight(line, "\r\n")
		switch {
		case inOutput && text == "":
			cases = append(cases, c)
			c, inOutput = scriptCase{}, false
		case inOutput:
			c.want += text + "\n"
		case text == "----":
			if len(c.commands) == 0 {
				return nil, "", fmt.Errorf("line %d: no command before ----", n)
			}
			inOutput = true
		case len(c.commands) == 0 && (text == "" || strings.HasPrefix(text, "#")):
			c.lead += text + "\n"
		default:
			if len(c.commands) == 0 {
				c.line = n
			}
			c.input += text + "\n"
			if !strings.HasPrefix(text, "#") {
				c.commands = append(c.commands, strings.Split(text, " · ")...)
			}
		}
	}
	switch {
	case inOutput:
		cases = append(cases, c)
	case len(c.commands) > 0:
		return nil, "", fmt.Errorf("line %d: commands without ---- after them", c.line)
	default:
		tail = c.lead
	}
	return cases, tail, nil
}

// runCase runs a block and returns what it prints. A fault, a panic too, is printed in place of the rest.
func (p *play) runCase(c scriptCase) (out string) {
	p.out.Reset()
	defer func() {
		if r := recover(); r != nil {
			out = p.out.String() + fmt.Sprintf("panic: %v\n", r)
		}
	}()
	for _, line := range c.commands {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := p.command(fields[0], newArguments(fields[1:])); err != nil {
			return p.out.String() + fmt.Sprintf("error: %s: %v\n", fields[0], err)
		}
	}
	if p.out.Len() == 0 {
		return "ok\n"
	}
	return p.out.String()
}

// arguments are the words behind a command: key=value, or bare words.
type arguments struct {
	words []string
	named map[string]string
	used  map[string]bool
	err   error
}

func newArguments(fields []string) *arguments {
	a := &arguments{named: map[string]string{}, used: map[string]bool{}}
	for _, f := range fields {
		if key, value, ok := strings.Cut(f, "="); ok {
			a.named[key] = value
		} else {
			a.words = append(a.words, f)
		}
	}
	return a
}

// str returns the named argument, or fallback if it was not given.
func (a *arguments) str(key, fallback string) string {
	v, ok := a.named[key]
	if !ok {
		return fallback
	}
	a.used[key] = true
	return v
}

// num is str for numbers.
func (a *arguments) num(key string, fallback int) int {
	v := a.str(key, "")
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s=%s is not a number", key, v)
	}
	return n
}

// nums is str for lists of numbers, separated by commas.
func (a *arguments) nums(key string) []int {
	var list []int
	v := a.str(key, "")
	if v == "" {
		return nil
	}
	for part := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(part)
		if err != nil && a.err == nil {
			a.err = fmt.Errorf("%s=%s is not a list of numbers", key, v)
		}
		list = append(list, n)
	}
	return list
}

// has tells whether the bare word was given, and takes it.
func (a *arguments) has(word string) bool {
	for i, w := range a.words {
		if w == word {
			a.words = append(a.words[:i:i], a.words[i+1:]...)
			return true
		}
	}
	return false
}

// word takes the first bare word.
func (a *arguments) word() string {
	if len(a.words) == 0 {
		if a.err == nil {
			a.err = errors.New("a name is missing")
		}
		return ""
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

// finish returns the first fault of the arguments, unknown ones included.
func (a *arguments) finish() error {
	if a.err != nil {
		return a.err
	}
	for key := range a.named {
		if !a.used[key] {
			return fmt.Errorf("unknown argument %s", key)
		}
	}
	if len(a.words) > 0 {
		return fmt.Errorf("unknown word %s", a.words[0])
	}
	return nil
}
