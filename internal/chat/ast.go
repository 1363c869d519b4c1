package chat

// An expr is a node that has a value, a stmt one that writes or assigns. Both know the line they began on.
type expr interface{ pos() int }

type stmt interface{ pos() int }

// at is the 1-based line a node began on; every node embeds it.
type at int

func (a at) pos() int { return int(a) }

// Expressions.
type (
	constExpr struct {
		at
		value Value
	}
	// nameExpr reads a variable, or names one to be stored. The analysis of scopes fills in ref.
	nameExpr struct {
		at
		name string
		ref  ref
	}
	// nsRef is the target of `set ns.attr = …`.
	nsRef struct {
		at
		ns   *nameExpr
		attr string
	}
	tupleExpr struct {
		at
		items []expr
	}
	listExpr struct {
		at
		items []expr
	}
	dictExpr struct {
		at
		keys, values []expr
	}
	// condExpr is `then if test else other`; other is nil when not given.
	condExpr struct {
		at
		test, then, other expr
	}
	// logicExpr is `left and right`, or with or set `left or right`.
	logicExpr struct {
		at
		or          bool
		left, right expr
	}
	notExpr struct {
		at
		x expr
	}
	// compareExpr is a chain such as a < b <= c.
	compareExpr struct {
		at
		first expr
		rest  []comparison
	}
	comparison struct {
		op string // == != < <= > >= in notin
		x  expr
	}
	binaryExpr struct {
		at
		op          string // + - * / // % **
		left, right expr
	}
	unaryExpr struct {
		at
		op string // + -
		x  expr
	}
	concatExpr struct {
		at
		parts []expr
	}
	attrExpr struct {
		at
		x    expr
		name string
	}
	itemExpr struct {
		at
		x, index expr
	}
	// sliceExpr is only found as the index of an itemExpr; absent parts are nil.
	sliceExpr struct {
		at
		start, stop, step expr
	}
	callExpr struct {
		at
		fn   expr
		args callArgs
	}
	// filterExpr has a nil x when it is the filter of a block: it is then applied to the block's text.
	filterExpr struct {
		at
		x    expr
		name string
		args callArgs
	}
	testExpr struct {
		at
		x    expr
		name string
		args callArgs
	}
	callArgs struct {
		positional []expr
		keywords   []keyword
		star       expr // *args, or nil
		doubleStar expr // **kwargs, or nil
	}
	keyword struct {
		name  string
		value expr
	}
)

// Statements.
type (
	// dataStmt is template text.
	dataStmt struct {
		at
		text string
	}
	printStmt struct {
		at
		x expr
	}
	forStmt struct {
		at
		target     expr
		testTarget expr // the same target as seen by the scope of test
		iter       expr
		test       expr // the `if` of the loop, or nil
		body       []stmt
		other      []stmt
		recursive  bool
		extended   bool // the body uses the loop variable
		loop       slot // where it is kept

		bodyScope, otherScope, testScope *scope
	}
	ifStmt struct {
		at
		branches []branch
		other    []stmt
	}
	branch struct {
		test expr
		body []stmt
	}
	setStmt struct {
		at
		target, value expr
	}
	// setBlockStmt is `set x` … `endset`, with a filter or nil.
	setBlockStmt struct {
		at
		target expr
		filter expr
		body   []stmt
		scope  *scope
	}
	macroStmt struct {
		at
		name  string
		ref   ref
		macro *macroDef
	}
	// macroDef is what macros, call blocks and generation blocks have in common: a body with parameters.
	macroDef struct {
		at
		name     string // empty for a call block
		params   []*nameExpr
		defaults []expr // of the last params
		body     []stmt
		scope    *scope

		// Slots of the special variables, -1 unless the body uses them.
		caller, kwargs, varargs slot
	}
	callBlockStmt struct {
		at
		call  *callExpr
		macro *macroDef
	}
	// generationStmt marks what the model is to generate. It renders its body in a scope of its own.
	generationStmt struct {
		at
		macro *macroDef
	}
	filterBlockStmt struct {
		at
		filter expr
		body   []stmt
		scope  *scope
	}
	withStmt struct {
		at
		targets, values []expr
		body            []stmt
		scope           *scope
	}
	// scopeStmt is the body of an autoescape tag.
	scopeStmt struct {
		at
		option expr
		body   []stmt
		scope  *scope
	}
	blockStmt struct {
		at
		name     string
		scoped   bool
		required bool
		body     []stmt
		scope    *scope
	}
	breakStmt    struct{ at }
	continueStmt struct{ at }
	// loadStmt is extends, include, import or from: they need other templates, and a model has only one.
	loadStmt struct {
		at
		tag   string
		names []*nameExpr
	}
)
