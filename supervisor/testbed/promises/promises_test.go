// Package promises tests, on the built binary against real ZooKeeper servers, each supervisor on a host of its own, what the
// supervisor promises (P1 to P7) and what the README says of failures: one test for each. P1 and the order of tokens are
// checked at the end of every one, and that each step is one of docs/model. What else there is to test with real servers and hosts is in the package e2e.
//
//	the active supervisor is stopped                 P6  TestStoppedSupervisorHandsOverAtOnce, TestCleanStopLeavesNothingBehind
//	the supervisor is killed with -9                 P6  TestKilledSupervisorHandsOverAtOnce
//	one guardian is killed                               TestKilledGuardianIsReplaced
//	Understudy is upgraded                               TestUpgradesLeaveTheChildAlone
//	supervisor and guardians, killed in any order    P4  TestNoTwoDeathsLeaveAChildAlive, TestThreeDeathsLeaveNoChildInAPidNamespace
//	the supervisor is frozen                         P3  TestFrozenSupervisorIsSucceededAndStandsByWhenThawed; e2e: TestNoTwoFreezesLetTwoRun
//	the host is cut off from ZooKeeper               P3  TestHostThatIsCutOffIsSucceededAndStandsByWhenHealed
//	the host is gone                                 P5  TestGraceIsKeptForAnotherMachine
//	the follower loses its leader                        e2e: TestFollowerThatLostItsLeaderDeceivesNobody
//	the leader is killed, servers are restarted      P7  TestFaultsOfServersThatEndAreNotNoticed, TestShortFreezeIsNotNoticed, TestShortCutIsNotNoticed
//	all servers are down; all data is lost               TestLossOfAllServers
//	the same with failsafe                               e2e: TestFailsafeChildGoesOnWithoutZooKeeper
//	the program is hard to kill                      P2  TestWholeTreeIsDeadBeforeTheLockIsGivenBack
//	it is missing, or keeps crashing                     TestProgramThatDoesNotRunIsGivenUpToTheStandby
//	a health check fails, or never ends                  TestAnUnhealthyServiceIsGivenToTheStandby, TestACheckThatHangsIsKilledWithWhatItForked
//	a file system hangs                                  supervisor/child: TestAStartThatHangsWithAFileSystemEnds
//	user, env file or directory is missing               TestAWorldThatCannotBeHadIsGivenToTheStandby
//	a supervisor of 200 services is killed               TestTwoHundredServicesMoveTogether
//	the config is edited                                 TestAChangedServiceDoesNotDisturbTheOthers
//	20 standbys in a queue                               election: TestFailoverInTheQueueCostsTheSameForAnyNumberOfStandbys
package promises

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

const (
	session = kit.Session
	soon    = kit.Soon

	// takeover is how long a standby may take when the active one just vanished: the session, the server's rounding, and the grace.
	takeover = session + 500*time.Millisecond + kit.Grace + kit.Stall
)

var suite kit.Suite

func TestMain(m *testing.M) { suite.Main(m) }

func stage(t testing.TB) *kit.Stage { t.Helper(); return suite.Stage(t) }

// play is a service with a session that outlasts what else the machine does.
func play(t *testing.T, s *kit.Stage, words ...string) *kit.Play {
	t.Helper()
	p := suite.Play(t, s, words...)
	t.Cleanup(func() { p.CheckSteps(t) })
	return p
}

// brief is a play in which a session has to end.
func brief(t *testing.T, s *kit.Stage, words ...string) *kit.Play {
	t.Helper()
	p := play(t, s, words...)
	p.Options.Session = session
	return p
}
