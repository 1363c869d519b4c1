package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Manual writes docs/configuration.md: a table of flags for each group, from the tags of Serve.
func Manual() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"Every flag of `quire serve`. Each can also be set by the environment variable beside it; the flag wins,\n" +
		"and an empty variable is as good as none.\n" +
		"Sizes take units (`512MiB`, `2GB`), times are seconds or durations (`90`, `1m30s`), lists repeat the flag or use commas.\n" +
		"A flag whose default is `true` is switched off by its `--no-` form.\n\n" +
		"This page is written by `make generate` from `internal/config`; a test compares them.\n")
	for group := range reflect.TypeFor[Serve]().Fields() {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n", group.Tag.Get("group"))
		for field := range group.Type.Fields() {
			name := FlagName(field)
			fmt.Fprintf(&b, "| `--%s` | `QUIRE_%s` | %s | %s |\n", name, strings.ToUpper(strings.ReplaceAll(name, "-", "_")),
				defaultOf(field), meaning(field))
		}
	}
	return b.String()
}

// FlagName is the name of a field on the command line: its tag, or the field's name in small letters with hyphens.
func FlagName(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range field.Name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}

// defaultOf is the default of a field as the table shows it.
func defaultOf(field reflect.StructField) string {
	if d := field.Tag.Get("default"); d != "" {
		return "`" + d + "`"
	}
	if field.Type.Kind() == reflect.Bool {
		return "`false`"
	}
	return ""
}

// meaning is the help of a field with the values and other names it has.
func meaning(field reflect.StructField) string {
	text := field.Tag.Get("help")
	if enum := field.Tag.Get("enum"); enum != "" {
		text += " One of `" + strings.ReplaceAll(enum, ",", "`, `") + "`."
	}
	if alias := field.Tag.Get("aliases"); alias != "" {
		text += " Also `--" + alias + "`."
	}
	return strings.ReplaceAll(text, "|", `\|`)
}
