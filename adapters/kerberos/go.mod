module github.com/zklock-go/zklock/adapters/kerberos

go 1.25

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/zklock-go/zklock => ../..
