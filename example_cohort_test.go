package zklock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/zklock-go/zklock"
)

// Many goroutines of one process take the same lock again and again. The process has one place in the
// queue for all of them, and asks a server only when another process wants the lock.
func ExampleCohort() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	stock := 1000 // in truth in a store that other processes use as well
	cohort := client.Cohort("/stock", &zklock.CohortOptions{Unfenced: true})
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for range 100 {
				must(cohort.Do(context.Background(), func(context.Context) error {
					stock--
					return nil
				}))
			}
		})
	}
	workers.Wait()
	fmt.Println(stock)
	// Output: 0
}
