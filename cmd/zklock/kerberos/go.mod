module github.com/zklock-go/zklock/cmd/zklock/kerberos

go 1.25

replace github.com/zklock-go/zklock => ../../..

replace github.com/zklock-go/zklock/adapters/kerberos => ../../../adapters/kerberos

require (
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
	github.com/zklock-go/zklock/adapters/kerberos v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/jcmturner/aescts/v2 v2.0.0 // indirect
	github.com/jcmturner/dnsutils/v2 v2.0.0 // indirect
	github.com/jcmturner/gofork v1.7.6 // indirect
	github.com/jcmturner/gokrb5/v8 v8.4.4 // indirect
	github.com/jcmturner/rpc/v2 v2.0.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.45.0 // indirect
	golang.org/x/net v0.47.0 // indirect
)
