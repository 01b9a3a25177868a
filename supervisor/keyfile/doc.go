// Package keyfile reads secrets and certificates from files, which may change while they are in use.
package keyfile
