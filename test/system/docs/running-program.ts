import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** With Node's compile cache, where the tests have one, a start takes half the time. */
const { PATH, NODE_COMPILE_CACHE } = process.env

/** It takes a second or two; beside other work on the machine, far longer. */
const START_MS = 120_000

/** Where a program runs. */
export interface ProgramOptions {
  /** The port that it will listen on. */
  readonly port: number
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Starts a TypeScript file that a reader would start, and waits until it takes connections. */
export async function startProgram(
  file: string,
  { port, cwd, env }: ProgramOptions,
): Promise<{ stop(): Promise<void> }> {
  const child = spawn(process.execPath, ['--conditions=@express-model-gateway/source', file], {
    cwd,
    env: { PATH, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  const deadline = performance.now() + START_MS
  while (!(await takesConnections(port))) {
    if (child.exitCode === null && performance.now() < deadline) await sleep(20)
    else {
      await stop()
      assert.fail(`${file} does not listen: ${said}`)
    }
  }
  return { stop }
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  })
  socket.destroy()
  return isOpen
}
