import { temporaryFolder } from '../stores/sql/support/temporary-database.ts'
import { clientLoad } from '../system/chaos/client-load.ts'

/*
 * The reference client through faults, at length: `npm run bench:client [calls]`. It exits with 1 when a call was charged
 * twice, answered with another's answer, or has not ended.
 */

const calls = Number(process.argv[2] ?? 10_000)
const cleanups: (() => unknown)[] = []
const { url, remove } = await temporaryFolder()
try {
  const after = (cleanup?: unknown): void => {
    if (typeof cleanup === 'function') cleanups.push(cleanup as () => unknown)
  }
  const { ends, charges, undone, violations, ...figures } = await clientLoad({ after }, url, calls)
  const how = Object.groupBy(ends, ({ kind, what, isReplay }) =>
    kind === 'answered' ? (isReplay ? 'answered from the call log' : 'answered') : `${kind} ${what}`.trim(),
  )
  const chargedTwice = [...charges.values()].filter((times) => times > 1).length
  const uncharged = ends.filter(({ kind, text }) => kind === 'answered' && !charges.has(text)).length
  const faults = {
    'not ended': calls - ends.length,
    'charged twice': chargedTwice,
    'answered and not charged': uncharged,
    'answered with another’s answer': ends.filter(({ kind }) => kind === 'foreign').length,
    'violations of the books': violations.length,
  }
  console.table(Object.entries(how).map(([end, all = []]) => ({ end, calls: all.length })))
  console.log({ calls, charged: charges.size, undone: undone.size, ...figures })
  console.log(faults)
  if (Object.values(faults).some((count) => count > 0)) process.exitCode = 1
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup()
  await remove()
}
