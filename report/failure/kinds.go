package failure

// Code is a word for a kind of failure. It stays the same from release to release.
type Code string

// The codes.
const (
	Usage        Code = "usage"
	BadSettings  Code = "bad_settings"
	NoSuchFile   Code = "no_such_file"
	NotSnapshot  Code = "not_a_snapshot"
	WrongKind    Code = "wrong_kind"
	Truncated    Code = "truncated"
	Corrupt      Code = "corrupt"
	Unsafe       Code = "unsafe"
	Limit        Code = "limit"
	NoHistory    Code = "no_history"
	NotInFile    Code = "not_in_file"
	NoData       Code = "no_data"
	CannotReplay Code = "cannot_replay"
	Unlike       Code = "not_comparable"
	Unread       Code = "unread_files"
	MissingRanks Code = "missing_ranks"
	Changed      Code = "changed"
	GateFailed   Code = "gate_failed"
	Permission   Code = "permission"
	NoSpace      Code = "no_space"
	WriteFailed  Code = "write_failed"
	IO           Code = "io_error"
	Unavailable  Code = "unavailable"
	NoDriver     Code = "no_driver"
	Stopped      Code = "stopped"
	Failed       Code = "failed"
)

// The exit codes of commands that fail.
const (
	exitGate    = 1
	exitInput   = 2
	exitEnv     = 3
	exitStopped = 130 // 128 and the number of SIGINT, as shells count
)

// Kind is a row of the table.
type Kind struct {
	Code    Code
	Exit    int    // of a command that fails so
	Meaning string // what went wrong
	Hint    string // what to do, where nothing better is known; names no flag, since not only commands fail
}

// Kinds is the table.
func Kinds() []Kind {
	return []Kind{
		{Usage, exitInput, "the command or the call is wrong: unknown flags, bad values, missing arguments",
			"correct what the message names; the help of the command lists what it takes"},
		{BadSettings, exitInput, "a file of rules or limits is not understood",
			"correct the file at the place that the message names"},
		{NoSuchFile, exitInput, "there is no such file",
			"check the path and the folder that it starts from"},
		{NotSnapshot, exitInput, "the file is no memory snapshot of PyTorch",
			"give a file that PyTorch's _dump_snapshot wrote"},
		{WrongKind, exitInput, "another kind of file is wanted there",
			"give the kind of file that the message names"},
		{Truncated, exitInput, "the file ends early",
			"write or copy the file again, or have it read as far as possible"},
		{Corrupt, exitInput, "the file is damaged",
			"copy the file again, or have it read as far as possible"},
		{Unsafe, exitInput, "the file contains Python objects, which would run code, and was refused",
			"do not load it in Python either, unless you trust its author; write the snapshot again"},
		{Limit, exitInput, "the file unpacks to more, or takes more work, than is allowed",
			"if you trust the file, allow more bytes"},
		{NoHistory, exitInput, "the question needs the history of allocations, and the file has none",
			"ask for the final state, or record the history: PyTorch's _record_memory_history()"},
		{NotInFile, exitInput, "the moment, step, GPU, address or label that was asked for is not in the file",
			"ask for one that the message lists"},
		{NoData, exitInput, "the file has nothing of what the command works on",
			"give a file that has it"},
		{CannotReplay, exitInput, "the setting or the change cannot be replayed",
			"leave it out, or try another"},
		{Unlike, exitInput, "the files cannot be held against each other: they are of different programs, or of the same values",
			"give recordings of one program that differ in what is asked for"},
		{Unread, exitInput, "some of several files could not be read; the answer is about the others",
			"the answer lists those files, each with what is wrong with it"},
		{MissingRanks, exitInput, "some ranks of the run are missing; the answer is about the others",
			"give the files of all ranks"},
		{Changed, exitInput, "the file changed while it was read",
			"wait until its program has written it, and try again"},
		{GateFailed, exitGate, "a limit was not kept, or could not be judged; the answer tells which",
			"read the limits that were not kept in the answer"},
		{Permission, exitEnv, "the system does not permit it",
			"run as a user who may, or choose another place"},
		{NoSpace, exitEnv, "there is no space left",
			"free some space, or choose another place"},
		{WriteFailed, exitEnv, "the output could not be written",
			"choose another place for the output"},
		{IO, exitEnv, "the disk or the file system failed",
			"try again, and check the disk if it fails again"},
		{Unavailable, exitEnv, "a store or a pipe does not answer",
			"check its address, credentials and network, and try again"},
		{NoDriver, exitEnv, "there is no NVIDIA driver on this machine, or it does not answer",
			"run it where the GPU is; reading snapshots needs no driver"},
		{Stopped, exitStopped, "interrupted",
			"run it again"},
		{Failed, exitInput, "something else",
			"correct what the message names, and try again"},
	}
}
