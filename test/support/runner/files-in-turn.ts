/**
 * Runs the test files that its arguments name one after the other in this process, each as a suite of its own. Reports
 * to the runner which one begins, and at the end what they left open. Fails where anything else is not as it was.
 */
import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { descendantsOf, signalIfThere } from '../processes.ts'
import { ProcessState } from './process-state.ts'

const TOLD_TO = 3
/** The runner ends a file that takes too long. */
const FOR_EVER = 2 ** 31 - 1
/** The symbol of Node's dispatcher for `fetch`. Its connections stay while nobody reads an answer that came on them. */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

const load = createRequire(import.meta.url)
const paths = process.argv.slice(2)
// Else Node opens a timer of its own where a test waits for what keeps no process from ending.
const awake = setInterval(() => {}, FOR_EVER)
// Kills descendants that have left the group, as a file that another one's end cut off may leave: later, none is found.
process.on('exit', () => {
  for (const { pid, group } of descendantsOf(process.pid))
    if (group !== process.pid) signalIfThere(pid, 'SIGKILL')
})
const found = new ProcessState()

for (const path of paths)
  describe(path, { timeout: FOR_EVER }, () => {
    before(() => void writeSync(TOLD_TO, `begins ${path}\n`))
    if (paths.length === 1) return import(pathToFileURL(resolve(path)).href)
    // Imports of several lose track of whose suite they are for.
    return load(resolve(path))
  })

it('the process is as it was', { timeout: FOR_EVER }, async () => {
  await (globalThis as { [DISPATCHER]?: { destroy(): Promise<void> } })[DISPATCHER]?.destroy()
  const open = await found.leftOpen()
  if (open.length > 0) writeSync(TOLD_TO, `open ${open.join(', ')}\n`)
  clearInterval(awake)
  found.assertUnchanged()
})
