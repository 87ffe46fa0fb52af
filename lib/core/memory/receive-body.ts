import type { IncomingMessage } from 'node:http'
import type { OpenCall } from '../call/index.ts'
import { GatewayError } from '../errors/index.ts'
import { type BudgetBounds, HeldBody } from './held-body.ts'

/** How large a body may be, alone and with those that are received at the same time. */
export interface BodyBounds {
  readonly bodyLimitBytes: number
  readonly budget: BudgetBounds
}

/** A body that has come whole. */
export interface ReceivedBody {
  readonly bytes: Buffer
  /** The memory that counts for the body until it is released. Undefined if the body came in one piece, as most do. */
  readonly held: HeldBody | undefined
}

/**
 * Receives a body whole, within the budget of its key and of the process.
 *
 * @param signal aborted, with the reason, when the call must end.
 * @throws {GatewayError} `request_too_large`, at once if the `Content-Length` says so; `client_closed_request` if the caller
 * leaves before the end; `concurrency_limited` or `upstream_overloaded` if there is no room; the reason of the signal.
 */
export function receiveBody(
  call: OpenCall,
  req: IncomingMessage,
  { bodyLimitBytes: limit, budget }: BodyBounds,
  signal?: AbortSignal,
): Promise<ReceivedBody> {
  return new Promise((resolve, reject) => {
    const length = req.headers['content-length']
    const declared = Number(length ?? limit)
    let single: Buffer | undefined
    let held: HeldBody | undefined
    let size = 0
    const stop = (): void => {
      signal?.removeEventListener('abort', onAbort)
      req.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
    }
    const fail = (error: unknown): void => {
      stop()
      held?.release()
      req.pause()
      reject(error)
    }
    const onAbort = (): void => fail(signal?.reason)
    const onBroken = (cause?: Error): void => fail(new GatewayError('client_closed_request', { cause }))
    const onData = (piece: Buffer): void => {
      size += piece.length
      if (size > limit) fail(new GatewayError('request_too_large'))
      else if (piece.length === Number(length) || (size === piece.length && req.complete)) single = piece
      else {
        held ??= new HeldBody(call, budget, fail)
        if (single) held.add(single)
        single = undefined
        held.add(piece)
      }
    }
    const onEnd = (): void => {
      stop()
      resolve({ bytes: held?.take() ?? single ?? Buffer.alloc(0), held })
    }
    if (signal?.aborted) return onAbort()
    // The first listener makes the server send the 100 that a caller may wait for, so a body that is refused gets none.
    if (declared > limit) return fail(new GatewayError('request_too_large'))
    if (req.destroyed && !req.readableEnded) return onBroken()
    signal?.addEventListener('abort', onAbort)
    req.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  })
}
