package slots

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAMarkSaysWhatItTells(t *testing.T) {
	at := time.Date(2026, 11, 22, 3, 4, 5, 0, time.Local)
	when := " at " + at.Format("2006-01-02 15:04:05 -0700")
	require.Empty(t, mark{}.String())
	require.Equal(t, when, mark{At: at.UnixMilli()}.String())
	require.Equal(t, " by web-1", mark{Who: "web-1"}.String())
	require.Equal(t, when+" by web-1", mark{At: at.UnixMilli(), Who: "web-1"}.String())
}
