import { before, describe } from 'node:test'
import { cleaningUp } from '../support/clean-up.ts'
import { taskChargesContract } from './task-charges.ts'
import { taskClaimsContract } from './task-claims.ts'
import { taskCreatesContract } from './task-creates.ts'
import { taskEndsContract } from './task-ends.ts'
import { taskPollsContract } from './task-polls.ts'
import { taskResolutionsContract } from './task-resolutions.ts'
import type { TasksUnderTest } from './task-samples.ts'

/** The contract of every store of video tasks, whatever it keeps them in. None of these tests waits for a time. */
export function taskStoreContract(
  name: string,
  open: () => Promise<TasksUnderTest>,
  skip: string | false = false,
): void {
  describe(`video task store: ${name}`, { skip }, () => {
    let tested: TasksUnderTest
    const cleanUp = cleaningUp()
    before(async () => {
      tested = await open()
      cleanUp.after(() => tested.close())
    })

    taskCreatesContract(() => tested)
    taskClaimsContract(() => tested)
    taskChargesContract(() => tested)
    taskEndsContract(() => tested)
    taskPollsContract(() => tested)
    taskResolutionsContract(() => tested)
  })
}
