package chat

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats t as the C library does in the C locale. An unknown directive is kept as it is.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		flag := byte(0)
		if c := format[i]; (c == '-' || c == '_' || c == '0' || c == '^') && i+1 < len(format) {
			flag = c
			i++
		}
		text, ok := directive(t, format[i])
		if !ok {
			b.WriteByte('%')
			if flag != 0 {
				b.WriteByte(flag)
			}
			b.WriteByte(format[i])
			continue
		}
		b.WriteString(flagged(text, flag))
	}
	return b.String()
}

// flagged applies glibc's flags: - takes away padding, _ pads with spaces, ^ makes upper case.
func flagged(text string, flag byte) string {
	switch flag {
	case '-', '_':
		padding := 0
		for padding < len(text)-1 && (text[padding] == '0' || text[padding] == ' ') {
			padding++
		}
		if flag == '-' {
			return text[padding:]
		}
		return strings.Repeat(" ", padding) + text[padding:]
	case '^':
		return strings.ToUpper(text)
	}
	return text
}

func directive(t time.Time, c byte) (string, bool) {
	if layout, ok := timeLayout(c); ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'Y':
		return fmt.Sprintf("%d", t.Year()), true
	case 'G':
		return fmt.Sprintf("%d", year), true
	case 'g':
		return fmt.Sprintf("%02d", year%100), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), true
	case 'u':
		return fmt.Sprintf("%d", (int(t.Weekday())+6)%7+1), true
	case 'w':
		return fmt.Sprintf("%d", int(t.Weekday())), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	case 's':
		return fmt.Sprintf("%d", t.Unix()), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'z', 'Z': // the time handed to Python's strftime has no zone
		return "", true
	case 'P':
		return strings.ToLower(t.Format("PM")), true
	}
	return "", false
}

// timeLayout is the layout of package time for the directives that have one.
func timeLayout(c byte) (string, bool) {
	switch c {
	case 'a':
		return "Mon", true
	case 'A':
		return "Monday", true
	case 'b', 'h':
		return "Jan", true
	case 'B':
		return "January", true
	case 'c':
		return "Mon Jan _2 15:04:05 2006", true
	case 'd':
		return "02", true
	case 'e':
		return "_2", true
	case 'D', 'x':
		return "01/02/06", true
	case 'F':
		return "2006-01-02", true
	case 'H':
		return "15", true
	case 'I':
		return "03", true
	case 'j':
		return "002", true
	case 'm':
		return "01", true
	case 'M':
		return "04", true
	case 'p':
		return "PM", true
	case 'r':
		return "03:04:05 PM", true
	case 'R':
		return "15:04", true
	case 'S':
		return "05", true
	case 'T', 'X':
		return "15:04:05", true
	case 'y':
		return "06", true
	}
	return "", false
}
