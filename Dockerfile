# The command and nothing else. `make image` builds it from a binary in bin/. There are no system certificates in it: for
# TLS, mount the authority's and name it with --tls-ca.
FROM scratch
COPY bin/zklock /zklock
USER 65534:65534
ENTRYPOINT ["/zklock"]
