import type { IncomingMessage } from 'node:http'
import { type BudgetBounds, HeldBody } from '../../../core/body-budget/index.ts'
import type { Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'

/** How large a body may be, alone and with those that are received at the same time. */
export interface BodyBounds {
  readonly bodyLimitBytes: number
  readonly budget: BudgetBounds
}

/** Receives a body whole, within the budget of its key and of the process. */
export function receiveWhole(
  call: Call,
  req: IncomingMessage,
  { bodyLimitBytes, budget }: BodyBounds,
  signal: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const declared = Number(req.headers['content-length'] ?? bodyLimitBytes)
    let size = 0
    const onAbort = (): void => fail(signal.reason)
    const onEnd = (): void => {
      const { bytes } = held
      // Not of the pool: the buffer is freed once it is sent.
      const whole = Buffer.from(new ArrayBuffer(bytes.length))
      bytes.copy(whole)
      stop()
      resolve(whole)
    }
    const onBroken = (cause?: Error): void => fail(new GatewayError('client_closed_request', { cause }))
    const onData = (piece: Buffer): void => {
      size += piece.length
      if (size > bodyLimitBytes) fail(new GatewayError('request_too_large'))
      else held.add(piece, declared)
    }
    const stop = (): void => {
      held.release()
      signal.removeEventListener('abort', onAbort)
      req.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
    }
    const fail = (error: unknown): void => {
      stop()
      req.pause()
      reject(error)
    }
    const held = new HeldBody(call, budget, fail)
    signal.addEventListener('abort', onAbort)
    req.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
    if (signal.aborted) onAbort()
    else if (declared > bodyLimitBytes) fail(new GatewayError('request_too_large'))
    else if (req.destroyed && !req.readableEnded) onBroken()
  })
}
