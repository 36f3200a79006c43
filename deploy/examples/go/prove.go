// prove SERVER KEY WITNESS VERIFICATION_KEY: one proof from the fleet, verified here, on standard output.
// A server with TLS wants BELLOWS_TLS_CA, BELLOWS_TLS_CERT and BELLOWS_TLS_KEY, as bellows submit does.
//
// Go over libbellows: go build prove.go
package main

/*
#cgo pkg-config: bellows
#include <bellows/bellows.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// check turns an answer of the library into an error.
func check(answer C.int, e *C.struct_bellows_error) error {
	if answer == C.BELLOWS_OK {
		return nil
	}
	return errors.New(C.GoString(&e.name[0]) + ": " + C.GoString(&e.detail[0]))
}

func prove(server, keyPath, witnessPath, vkeyPath string) (string, error) {
	vkey, err := os.ReadFile(vkeyPath)
	if err != nil {
		return "", err
	}
	texts := []*C.char{}
	text := func(s string) *C.char {
		if s == "" {
			return nil
		}
		c := C.CString(s)
		texts = append(texts, c)
		return c
	}
	defer func() {
		for _, c := range texts {
			C.free(unsafe.Pointer(c))
		}
	}()

	var e C.struct_bellows_error
	var fleet *C.struct_bellows
	var key *C.struct_bellows_key
	var job *C.struct_bellows_job
	var result *C.struct_bellows_result
	defer C.bellows_close(&fleet) // deferred calls run in reverse: the fleet is closed last
	defer C.bellows_key_close(&key)
	defer C.bellows_job_close(&job)
	defer C.bellows_result_free(&result)

	options := C.struct_bellows_options{
		server:    text(server),
		tenant:    text(os.Getenv("BELLOWS_TENANT")),
		ca_file:   text(os.Getenv("BELLOWS_TLS_CA")),
		cert_file: text(os.Getenv("BELLOWS_TLS_CERT")),
		key_file:  text(os.Getenv("BELLOWS_TLS_KEY")),
	}
	if err := check(C.bellows_open(&fleet, &options, &e), &e); err != nil {
		return "", err
	}
	if err := check(C.bellows_key_open(&key, text(keyPath), 0, &e), &e); err != nil {
		return "", err
	}
	witness := C.struct_bellows_witness{path: text(witnessPath)}
	if err := check(C.bellows_submit(&job, fleet, key, &witness, 1, nil, &e), &e); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "job", C.GoString(C.bellows_job_id(job)))
	if err := check(C.bellows_wait(&result, job, 60000, &e), &e); err != nil {
		return "", err
	}
	proof := C.bellows_result_proof(result, 0)
	if err := check(C.bellows_verify(text(string(vkey)), C.bellows_result_public(result, 0), proof, 0, &e), &e); err != nil {
		return "", err
	}
	return C.GoString(proof), nil
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: prove SERVER KEY WITNESS VERIFICATION_KEY")
		os.Exit(2)
	}
	proof, err := prove(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
	fmt.Println(proof)
}
