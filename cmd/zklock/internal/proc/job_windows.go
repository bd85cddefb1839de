// SPDX-License-Identifier: Apache-2.0

//go:build windows && (amd64 || arm64)

package proc

import (
	"os/exec"
	"syscall"
	"unsafe"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// Unguarded is a warning for systems on which not all processes of the command are ended. It is empty here.
const Unguarded = ""

var (
	kernel32                  = syscall.NewLazyDLL("kernel32.dll")
	createJobObject           = kernel32.NewProc("CreateJobObjectW")
	setInformationJobObject   = kernel32.NewProc("SetInformationJobObject")
	queryInformationJobObject = kernel32.NewProc("QueryInformationJobObject")
	assignProcessToJobObject  = kernel32.NewProc("AssignProcessToJobObject")
	terminateJobObject        = kernel32.NewProc("TerminateJobObject")
	resumeProcess             = syscall.NewLazyDLL("ntdll.dll").NewProc("NtResumeProcess")
)

// jobObject contains a command and everything it starts; no process can leave it. The system ends all of them when the last
// handle is closed, which happens whenever zklock ends, for any reason.
type jobObject struct{ handle syscall.Handle }

// extendedLimits is JOBOBJECT_EXTENDED_LIMIT_INFORMATION on 64-bit systems.
type extendedLimits struct {
	_     [2]int64
	flags uint32
	_     [2]uintptr
	_     uint32
	_     uintptr
	_     [2]uint32
	_     [6]uint64
	_     [4]uintptr
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	_      [4]int64
	_      [2]uint32
	active uint32
	_      uint32
}

func newJobObject() (*jobObject, error) {
	handle, _, err := createJobObject.Call(0, 0)
	if handle == 0 {
		return nil, err
	}
	const (
		extendedLimitInformation = 9
		killOnJobClose           = 0x2000
	)
	limits := extendedLimits{flags: killOnJobClose}
	ok, _, err := setInformationJobObject.Call(handle, extendedLimitInformation, uintptr(unsafe.Pointer(&limits)), unsafe.Sizeof(limits))
	if ok == 0 {
		syscall.CloseHandle(syscall.Handle(handle))
		return nil, err
	}
	return &jobObject{syscall.Handle(handle)}, nil
}

// start starts a command in the job. The command does not run until it is in the job.
func (j *jobObject) start(cmd *exec.Cmd) error {
	const suspended = 0x4
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: suspended}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := j.take(cmd.Process.Pid); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return err
	}
	return nil
}

// take puts a suspended process into the job and lets it run.
func (j *jobObject) take(pid int) error {
	const terminate, setQuota, suspendResume = 0x1, 0x100, 0x800
	process, err := syscall.OpenProcess(terminate|setQuota|suspendResume, false, uint32(pid))
	if err != nil {
		return err
	}
	defer syscall.CloseHandle(process)
	if ok, _, err := assignProcessToJobObject.Call(uintptr(j.handle), uintptr(process)); ok == 0 {
		return err
	}
	if status, _, _ := resumeProcess.Call(uintptr(process)); status != 0 {
		return syscall.Errno(status)
	}
	return nil
}

// active returns the number of processes in the job.
func (j *jobObject) active() int {
	const basicAccountingInformation = 1
	var a accounting
	ok, _, _ := queryInformationJobObject.Call(uintptr(j.handle), basicAccountingInformation, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0)
	if ok == 0 {
		return 0
	}
	return int(a.active)
}

// kill kills every process in the job.
func (j *jobObject) kill() { terminateJobObject.Call(uintptr(j.handle), uintptr(outcome.Lost)) }

func (j *jobObject) close() { syscall.CloseHandle(j.handle) }
