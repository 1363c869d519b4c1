package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// repeat is a loop around body.
func repeat(n string, body string) string {
	return "{% for i in range(" + n + ") %}" + body + "{% endfor %}"
}

// doubled makes two equal lists, ns.l and ns.m, that hold themselves 2⁶⁴ times.
var doubled = "{% set ns = namespace(l=[0], m=[0]) %}" +
	repeat("64", "{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}")

// hostile are templates that try to take all memory, all time or all of the stack, each within the language.
var hostile = map[string]string{
	"recursive macro":       `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`,
	"mutual macros":         `{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`,
	"recursive caller":      `{% macro m() %}{{ caller() }}{% call m() %}{% endcall %}{% endmacro %}{% call m() %}{% endcall %}`,
	"recursive loop":        `{% set ns = namespace(l=[1]) %}{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}`,
	"nested loops":          strings.Repeat(`{% for x in range(100000) %}`, 5) + strings.Repeat(`{% endfor %}`, 5),
	"output":                `{% for x in range(100000) %}{% for y in range(100000) %}0123456789{% endfor %}{% endfor %}`,
	"string repetition":     `{{ 'x' * 100000000000 }}`,
	"list repetition":       `{{ [1] * 100000000000 }}`,
	"repetition of nothing": `{{ [0] * 9223372036854775807 }}`,
	"doubling string":       `{% set ns = namespace(s='x') %}` + repeat("64", `{% set ns.s = ns.s + ns.s %}`),
	"doubling join":         `{% set ns = namespace(s='xx') %}` + repeat("64", `{% set ns.s = ns.s|join(ns.s) %}`),
	"doubling replace":      `{% set ns = namespace(s='xx') %}` + repeat("64", `{% set ns.s = ns.s.replace('x', ns.s) %}`),
	"doubling format":       `{% set ns = namespace(s='x') %}` + repeat("64", `{% set ns.s = '%s%s' % (ns.s, ns.s) %}`),
	"doubling braces":       `{% set ns = namespace(s='x') %}` + repeat("64", `{% set ns.s = '{0}{0}'.format(ns.s) %}`),
	"doubling list":         `{% set ns = namespace(l=[0]) %}` + repeat("64", `{% set ns.l = ns.l + ns.l %}`),
	"doubling block":        "{% set x %}x{% endset %}" + strings.Repeat(`{% set x %}{{ x }}{{ x }}{% endset %}`, 64),
	"doubling print":        doubled + `{{ ns.l }}`,
	"doubling json":         doubled + `{{ ns.l|tojson }}`,
	"doubling comparison":   doubled + `{{ ns.l == ns.m }}`,
	"doubling key":          `{% set ns = namespace(l=(0,)) %}` + repeat("64", `{% set ns.l = (ns.l, ns.l) %}`) + `{{ {ns.l: 1} }}`,
	"doubling sort":         doubled + `{{ [ns.l, ns.m]|sort }}`,
	"deep list":             `{% set ns = namespace(l=[]) %}` + repeat("99999", `{% set ns.l = [ns.l] %}`) + `{{ ns.l }}`,
	"deep json":             `{% set ns = namespace(l=[]) %}` + repeat("99999", `{% set ns.l = {'a': ns.l} %}`) + `{{ ns.l|tojson }}`,
	"deep comparison": `{% set ns = namespace(l=[], m=[]) %}` +
		repeat("9999", `{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] %}`) + `{{ ns.l == ns.m }}`,
	"deep generators":         `{% set ns = namespace(g=[1]) %}` + repeat("99999", `{% set ns.g = ns.g|map('string') %}`) + `{{ ns.g|list }}`,
	"big power":               `{{ 10 ** (10 ** 10) }}`,
	"big powers":              `{% set ns = namespace(n=3) %}` + repeat("99", `{% set ns.n = ns.n * ns.n %}`),
	"big shift by int filter": `{{ ('9' * 4000)|int ** 100 }}`,
	"width of two billion":    `{{ '%2000000000d' % 1 }}`,
	"star width":              `{{ '%*d' % (99999999999, 1) }}`,
	"precision":               `{{ '%.2000000000f' % 1 }}`,
	"brace width":             `{{ '{:2000000000}'.format(1) }}`,
	"brace zeros":             `{{ '{:02000000000,}'.format(1) }}`,
	"center":                  `{{ 'x'|center(99999999999) }}`,
	"ljust":                   `{{ 'x'.ljust(99999999999) }}`,
	"zfill":                   `{{ 'x'.zfill(9223372036854775807) }}`,
	"expandtabs":              `{{ '\t'.expandtabs(9223372036854775807) }}`,
	"indent":                  `{{ 'x'|indent(99999999999) }}`,
	"json indent":             `{{ [[[[1]]]]|tojson(indent=99999999999) }}`,
	"json indent text":        `{{ ([1] * 100000)|tojson(indent='x' * 1000000) }}`,
	"batch":                   `{{ [1]|batch(99999999999, 0)|list }}`,
	"slice":                   `{{ [1]|slice(99999999999)|list }}`,
	"big strip set":           `{{ ('a' * 1000000).strip('b' * 1000000 ~ 'a') ~ 'x' * 999999999 }}`,
	"endless cycle":           `{% for i in range(99999) %}{% for j in range(99999) %}{% set x = cycler(1).next() %}{% endfor %}{% endfor %}`,
	"searching":               `{% set s = 'a' * 10000000 %}` + repeat("99999", `{% if 'b' in s %}{% endif %}`),
	"indexing":                `{% set s = 'é' * 10000000 %}` + repeat("99999", `{% if s[i] %}{% endif %}`),
	"hashing":                 `{% set s = 'a' * 10000000 %}{% set d = {'a': 1} %}` + repeat("99999", `{% if s in d %}{% endif %}`),
}

// TestHostileTemplatesAreStopped also holds the time down: each of them stops within the default limits, in seconds.
func TestHostileTemplatesAreStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and under the race detector a minute")
	}
	for name, src := range hostile {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			text, err := tmpl.Render(t.Context(), nil, Options{Limits: Limits{Steps: 500_000, BuiltBytes: 32 << 20}})
			var limit *LimitError
			if !errors.As(err, &limit) {
				t.Errorf("Render(%s) = %d bytes, %v; want a LimitError", name, len(text), err)
			}
		})
	}
}

// TestDeepSourceIsRefused holds Go's stack down while parsing, and the tree that the evaluator walks.
func TestDeepSourceIsRefused(t *testing.T) {
	const n = 50_000
	for name, src := range map[string]string{
		"brackets":    "{{ " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}",
		"lists":       "{{ " + strings.Repeat("[", n) + strings.Repeat("]", n) + " }}",
		"dicts":       "{{ " + strings.Repeat("{1:", n) + "1" + strings.Repeat("}", n) + " }}",
		"subscripts":  "{{ " + strings.Repeat("a[", n) + "1" + strings.Repeat("]", n) + " }}",
		"calls":       "{{ " + strings.Repeat("a(", n) + "1" + strings.Repeat(")", n) + " }}",
		"minus signs": "{{ " + strings.Repeat("-", n) + "1 }}",
		"not":         "{{ " + strings.Repeat("not ", n) + "1 }}",
		"sums":        "{{ 1" + strings.Repeat("+1", n) + " }}",
		"ands":        "{{ 1" + strings.Repeat(" and 1", n) + " }}",
		"attributes":  "{{ a" + strings.Repeat(".a", n) + " }}",
		"filters":     "{{ a" + strings.Repeat("|upper", n) + " }}",
		"tests":       "{{ a" + strings.Repeat(" is string", n) + " }}",
		"ifs":         strings.Repeat("{% if 1 %}", n) + strings.Repeat("{% endif %}", n),
		"inline ifs":  "{{ 1" + strings.Repeat(" if 1", n) + " }}",
		"elses":       "{{ 1" + strings.Repeat(" if 1 else 1", n) + " }}",
		"set blocks":  strings.Repeat("{% set x %}", n) + strings.Repeat("{% endset %}", n),
		"tuples":      "{% for " + strings.Repeat("(", n) + "a" + strings.Repeat(",)", n) + " in b %}{% endfor %}",
		"too long":    strings.Repeat("x", maxSourceBytes+1),
		"branches":    manyBranches(3000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(src)
			var limit *LimitError
			var syntax *SyntaxError
			if !errors.As(err, &limit) && !errors.As(err, &syntax) {
				t.Errorf("Parse = %v, want a LimitError or a SyntaxError", err)
			}
		})
	}
}

// manyBranches is a chain of elifs that each store a name of their own.
func manyBranches(n int) string {
	var b strings.Builder
	b.WriteString("{% if 0 %}")
	for i := range n {
		fmt.Fprintf(&b, "{%% elif 1 %%}{%% set v%d = 1 %%}", i)
	}
	b.WriteString("{% endif %}")
	return b.String()
}

func TestRenderStopsWithItsContext(t *testing.T) {
	cause := errors.New("client gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	tmpl, err := Parse(`{% for x in range(100000) %}{{ x }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(ctx, nil, Options{}); !errors.Is(err, cause) {
		t.Errorf("Render after cancel = %v, want %v", err, cause)
	}
}

func TestOutputLimit(t *testing.T) {
	tmpl, err := Parse(`{{ '0123456789' * 10 }}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(t.Context(), nil, Options{Limits: Limits{OutputBytes: 100}}); err != nil {
		t.Errorf("100 bytes within a limit of 100: %v", err)
	}
	_, err = tmpl.Render(t.Context(), nil, Options{Limits: Limits{OutputBytes: 99}})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Limit != 99 {
		t.Errorf("100 bytes within a limit of 99: %v, want a LimitError of 99", err)
	}
}

func FuzzParseAndRender(f *testing.F) {
	for _, src := range hostile {
		f.Add(src)
	}
	f.Add(`{% for a, b in d|dictsort if a is string recursive %}{{ loop.index ~ a|tojson(indent=2) }}{% else %}x{% endfor %}`)
	f.Add(`{% macro m(a, b=1) %}{{ caller(a) if caller else varargs }}{% endmacro %}{% call(x) m(1, *l, **d) %}{{ x }}{% endcall %}`)
	f.Add(`{%- raw -%} {{ {% endraw +%}{# c -#} {% set ns = namespace(a=1) %}{% set ns.a, b = 'xy' %}{{ '%5.2f|%s' % (1, ns) }}`)
	f.Add(`{{ '{0[1].x!r:>{w}}'.format(l, w=9) }}{{ s[::-1][1:-1].split(none, 1)|map('upper')|groupby(0)|list }}`)
	vars, err := FromJSON([]byte(`{"d":{"a":1,"b":[1.5,null]},"l":[1,"é",{"x":[]}],"s":"Hello 你好","n":null,"big":123456789012345678901}`))
	if err != nil {
		f.Fatal(err)
	}
	limits := Limits{Steps: 50_000, BuiltBytes: 4 << 20, OutputBytes: 1 << 20}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse(src)
		if err != nil {
			return
		}
		tmpl.WantsContentParts()
		text, err := tmpl.Render(t.Context(), vars.(*Dict), Options{Now: time.Unix(0, 0), Limits: limits})
		if int64(len(text)) > limits.OutputBytes {
			t.Errorf("%d bytes of output, limit %d", len(text), limits.OutputBytes)
		}
		if err != nil && text != "" {
			t.Errorf("output %q beside error %v", text, err)
		}
	})
}
