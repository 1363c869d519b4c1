// Package chat turns a conversation into the text a model was trained on. It holds Quire's own interpreter for the
// Jinja templates that come with a model: lexer, parser, scope analysis, evaluator, and Python's values.
//
// The result is byte for byte what Hugging Face transformers renders with Python's jinja2: an immutable sandbox with
// trim_blocks and lstrip_blocks, loop controls, the generation tag, tojson as json.dumps, raise_exception and
// strftime_now. Where Python raises an error, so does Render; nothing is rendered leniently.
//
// A template is a program from a model file and so is not trusted. It reaches nothing but the variables it is given,
// and every render is bounded by [Limits]: evaluation steps, nesting depth, bytes built and bytes written. Parsing is
// bounded by the length and the nesting of the source. Neither Parse nor Render panics or exhausts the stack.
//
//	t, err := chat.Parse(source)
//	text, err := t.Render(ctx, vars, chat.Options{Now: time.Now()})
//
// A [Template] is immutable once parsed and may be rendered by any number of goroutines at once. A [Value] handed to
// Render is only read.
package chat
