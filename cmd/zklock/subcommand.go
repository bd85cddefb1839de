package main

// subcommand is one of the things that zklock does.
type subcommand struct {
	name, about string
	define      func(std streams) *command
	hidden      bool // in no list
}

// command is a subcommand with its flags.
type command struct {
	*flags
	run func(args []string) error
}
