package chat

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

const plain = `{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`

func messages(t *testing.T, json string) Value {
	t.Helper()
	v, err := FromJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustParse(t *testing.T, src string) *Template {
	t.Helper()
	tmpl, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestRenderConversation(t *testing.T) {
	extra := &Dict{}
	extra.Set("bos_token", Str("[B]"))
	cases := []struct {
		name string
		c    Conversation
		want string
	}{
		{
			"prompt",
			Conversation{Messages: messages(t, `[{"role":"user","content":"Hi"}]`), AddGenerationPrompt: true},
			"<user>Hi</>\n<assistant>",
		},
		{"special token", Conversation{
			Messages: messages(t, `[{"role":"user","content":"Hi"}]`), Special: map[string]string{"bos_token": "<s>"},
		}, "<s><user>Hi</>\n"},
		{"extra wins", Conversation{
			Messages: messages(t, `[]`), Special: map[string]string{"bos_token": "<s>"}, Extra: extra,
		}, "[B]"},
		{"continued", Conversation{
			Messages:             messages(t, `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hi, I am"}]`),
			ContinueFinalMessage: true,
		}, "<user>Hi</>\n<assistant>Hi, I am"},
		{"continued, trimmed by the template", Conversation{
			Messages: messages(t, `[{"role":"assistant","content":" I am "}]`), ContinueFinalMessage: true,
		}, "<assistant>I am"},
		{"continued part", Conversation{
			Messages: messages(t, `[{"role":"a","content":"so"},{"role":"a","content":[{"type":"text","text":"so"},{"type":"image"}]}]`),

			ContinueFinalMessage: true,
		}, "<a>so</>\n<a>[{'type': 'text', 'text': 'so"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustParse(t, plain).RenderConversation(t.Context(), &c.c, Options{})
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestContinueFinalMessageRefuses(t *testing.T) {
	for name, c := range map[string]Conversation{
		"both ways":    {Messages: messages(t, `[{"role":"user","content":"a"}]`), AddGenerationPrompt: true},
		"no messages":  {Messages: messages(t, `[]`)},
		"no list":      {},
		"no object":    {Messages: messages(t, `["a"]`)},
		"no text":      {Messages: messages(t, `[{"role":"user","content":null}]`)},
		"changed text": {Messages: messages(t, `[{"role":"user","content":"abc"}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			c.ContinueFinalMessage = true
			tmpl := mustParse(t, `{% for m in messages %}{{ m.content|upper }}{% endfor %}`)
			if got, err := tmpl.RenderConversation(t.Context(), &c, Options{}); err == nil {
				t.Errorf("got %q, want an error", got)
			}
		})
	}
}

func TestWantsContentParts(t *testing.T) {
	cases := []struct {
		src  string
		want bool
	}{
		{plain, false},
		{`{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}`, true},
		{`{% for m in messages %}{% for p in m['content'] %}{{ p.text }}{% endfor %}{% endfor %}`, true},
		{`{% for m in messages %}{% for p in m['content']|selectattr('type') %}{% endfor %}{% endfor %}`, true},
		{`{% set rest = messages[1:] %}{% for m in rest %}{% for p in m.content %}{% endfor %}{% endfor %}`, true},
		{`{% if a %}{% set r = messages %}{% endif %}{% set q = r|list %}
			{% for m in q %}{% for p in m.content %}{% endfor %}{% endfor %}`, true},
		{`{% for m in messages %}{% for c in m.tool_calls %}{% endfor %}{% endfor %}`, false},
		{`{% for m in others %}{% for p in m.content %}{% endfor %}{% endfor %}`, false},
		{`{% for m in messages[::-1] if m.role == 'user' %}{% for p in m.content[:1] %}{% endfor %}{% endfor %}`, true},
		{`{% macro show(m) %}{% for p in m.content %}{% endfor %}{% endmacro %}{% for m in messages %}{{ show(m) }}{% endfor %}`, true},
	}
	for _, c := range cases {
		if got := mustParse(t, c.src).WantsContentParts(); got != c.want {
			t.Errorf("WantsContentParts(%s) = %v, want %v", c.src, got, c.want)
		}
	}
}

// TestRaisedMessageIsExact also checks that errors say the line of the template.
func TestRaisedMessageIsExact(t *testing.T) {
	_, err := render(t, "a\n\n{% if true %}\n{{ raise_exception('Roles must alternate: \"x\"\\n') }}{% endif %}", nil)
	var raised *TemplateError
	if !errors.As(err, &raised) || raised.Message != "Roles must alternate: \"x\"\n" || raised.Line != 4 {
		t.Errorf("error %#v, want a TemplateError with the message, line 4", err)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct {
		src, want string
	}{
		{"{{ 1 }}\n{{ missing.x }}", "chat template line 2: UndefinedError: 'missing' is undefined"},
		{"{% for x in [1] %}\n\n{{ 'a' + x }}{% endfor %}", `chat template line 3: TypeError: can only concatenate str (not "int") to str`},
		{"{% macro m() %}\n{{ 1 / 0 }}\n{% endmacro %}\n{{ m() }}", "chat template line 2: ZeroDivisionError: division by zero"},
		{"a\n{% if x", "chat template line 2: TemplateSyntaxError: unexpected end of template, expected 'end of statement block'."},
		{"a\n{{ x|nope }}", "chat template line 2: TemplateAssertionError: No filter named 'nope'."},
		{"\n\n{% endfor %}", "chat template line 3: TemplateSyntaxError: Encountered unknown tag 'endfor'."},
	} {
		if _, err := render(t, c.src, nil); err == nil || err.Error() != c.want {
			t.Errorf("render(%q)\n error %v\n want  %s", c.src, err, c.want)
		}
	}
}

// TestConcurrentRenders would fail under the race detector if a render changed its template or its variables.
func TestConcurrentRenders(t *testing.T) {
	tmpl := mustParse(t, `{% set ns = namespace(n=0) %}{% macro m(x) %}[{{ x|upper }}]{% endmacro -%}
{% for x in messages|sort(attribute='content') %}{% set ns.n = ns.n + loop.index -%}
{{ m(x.content) ~ loop.cycle(1, 2) }}{% endfor %}{{ ns.n }}`)
	vars := &Dict{}
	vars.Set("messages", messages(t, `[{"content":"b"},{"content":"a"},{"content":"c"}]`))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if got, err := tmpl.Render(t.Context(), vars, Options{}); err != nil || got != "[A]1[B]2[C]16" {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestFromJSONKeepsOrderAndNumbers(t *testing.T) {
	const text = `{"b": 1, "a": [1.0, 1e-05, 1E3, -0.0, 123456789012345678901234567890], "z": {"y": null, "x": true}, "b": 2}`
	v, err := FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	vars := &Dict{}
	vars.Set("v", v)
	const want = `{'b': 2, 'a': [1.0, 1e-05, 1000.0, -0.0, 123456789012345678901234567890], 'z': {'y': None, 'x': True}}`
	if got, err := render(t, "{{ v }}", vars); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	for _, bad := range []string{``, `{`, `1 2`, `{"a"}`, `[1,]`, "\"\xff\"", `nul`, strings.Repeat("9", maxIntDigits+1)} {
		if v, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("FromJSON(%.20q) = %v, want an error", bad, v)
		}
	}
}

func TestFromGo(t *testing.T) {
	vars := &Dict{}
	vars.Set("v", FromGo(map[string]any{
		"s": "x", "n": nil, "i": 1, "f": 1.0, "l": []any{true, int64(2), Str("y")}, "t": []string{"z"},
	}))
	const want = `{'f': 1.0, 'i': 1, 'l': [True, 2, 'y'], 'n': None, 's': 'x', 't': ['z']}`
	if got, err := render(t, "{{ v }}", vars); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
