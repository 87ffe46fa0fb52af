import {
  type CallEnding,
  type ChosenLine,
  entryOf,
  NO_BILLING,
  type OpenCall,
} from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import type { Budgets } from '../../../ledger/index.ts'
import { acceptedTask, intendedTask } from '../../../ledger/tasks/new-task.ts'
import type { CreateTarget, TaskIntent, VideoTask } from '../../../ledger/tasks/task.ts'
import type { CreatedTask, Intended, TaskStore } from '../../../ledger/tasks/task-store.ts'
import type { CreateOutcome } from '../tasks/line-client.ts'
import type { RetryingWriter } from '../tasks/retrying-writer.ts'
import { storeAnswer } from '../tasks/store-wait.ts'
import { type IntentGate, NotStarted } from './intent-gate.ts'

/** The parts that {@link CreateRecord} works with. */
export interface RecordDeps {
  readonly tasks: TaskStore
  readonly records: RetryingWriter
  readonly gate: IntentGate
  readonly budgets: Pick<Budgets, 'matching' | 'refusal'> | undefined
}

type Accepted = Extract<CreateOutcome, { kind: 'accepted' }>
type Unknown = Extract<CreateOutcome, { kind: 'unknown' }>

/** Writes the result of one create: its task and hold, its Idempotency-Key and its log entry. */
export class CreateRecord {
  readonly #call: OpenCall
  readonly #tasks: TaskStore
  readonly #records: RetryingWriter
  readonly #gate: IntentGate
  readonly #budgets: RecordDeps['budgets']
  /** Set while the store may have a row for it. */
  #intent: TaskIntent | undefined
  /** Whether the store has confirmed the row. */
  #isConfirmed = false
  /** Resolves when the store has answered the intent or has failed; the call may have ended before. */
  #intended: Promise<void> = Promise.resolve()

  constructor(call: OpenCall, { tasks, records, gate, budgets }: RecordDeps) {
    this.#call = call
    this.#tasks = tasks
    this.#records = records
    this.#gate = gate
    this.#budgets = budgets
  }

  /**
   * Writes a row that names the line before the create is sent to it.
   *
   * @param intentFor returns the intent; called the first time only.
   * @throws {GatewayError} if the create must not be sent.
   */
  async announce(target: CreateTarget, intentFor: () => TaskIntent): Promise<void> {
    if (this.#intent) {
      const isIntended = await this.#orAway(this.#tasks.redirect(this.#intent.id, target))
      if (!isIntended) throw new GatewayError('internal_error', { cause: new Error('the intent is gone') })
      return
    }
    this.#intent = intentFor()
    const intent = this.#intent
    const intending = this.#gate.run(intent.account, () => this.#tasks.intend(intent))
    this.#intended = intending.then(
      () => {},
      (error) => {
        if (error instanceof NotStarted) this.#intent = undefined
      },
    )
    this.#judge(await this.#orAway(intending))
  }

  #judge(intended: Intended): void {
    const call = this.#call
    switch (intended.kind) {
      case 'held':
        this.#isConfirmed = true
        call.billing = { ...NO_BILLING, reserved: intended.task.hold }
        // The claim belongs to the task from now on: the call neither renews nor releases it.
        this.#setClaim('completed')
        return
      case 'refused': {
        this.#intent = undefined
        const { refused, required, available, budget } = intended
        call.billing = { ...NO_BILLING, required, available, ...(budget && { budget: budget.budget }) }
        throw call.refuse(refused, budget && this.#budgets?.refusal(refused, budget))
      }
      case 'claim_lost':
        this.#intent = undefined
        throw call.refuse('idempotency_key_in_use')
      default:
        throw new TypeError('the store of video tasks did not say whether it holds the money of a create')
    }
  }

  /**
   * Records that the line accepted the create.
   *
   * @param answerOf returns the answer to the caller, which the log entry has too.
   * @returns the answer; everything in it is durable.
   */
  async accepted(
    chosen: ChosenLine,
    { upstreamId, observation }: Accepted,
    answerOf: (task: VideoTask) => string,
  ): Promise<string> {
    const call = this.#call
    const intent = this.#intent as TaskIntent
    const at = Date.now()
    const claim = call.idempotency?.claim
    const kept = claim && intent.claim ? { ...intent.claim, keepUntil: at + claim.keepMs } : null
    const unlogged: CreatedTask = { upstreamId, observation, claim: kept, entry: null }
    const task = createdTask(intent, chosen, unlogged, at)
    const answer = answerOf(task)
    const ending: CallEnding = {
      outcome: { status: 200, errorCode: null, finish: 'completed' },
      unsent: answer,
    }
    const writesEntry = this.#tasks.settlesRecords && call.entryBy === 'ledger'
    const created = { ...unlogged, entry: writesEntry ? entryOf(call, ending) : null }
    const known = await this.#records.write('created', intent.id, () =>
      this.#tasks.created(intent.id, created, at),
    )
    if (known === 'late' || known === undefined) {
      const [reason, task, line] = [known ?? 'the intent is gone', intent.id, chosen.line.id]
      call.logger.error(
        { requestId: call.id, task, line, upstreamId, reason },
        'video: a task was started upstream and is not recorded',
      )
      throw call.refuse('billing_unavailable', { message: NOT_RECORDED, shouldRetry: false })
    }
    if (writesEntry) call.entryBy = 'written'
    return answer
  }

  /** Records that it is unknown whether a line accepted the create. */
  async unresolved({ line }: ChosenLine, { code, detail }: Unknown): Promise<GatewayError> {
    const call = this.#call
    const intent = this.#intent as TaskIntent
    call.logger.warn(
      { requestId: call.id, task: intent.id, line: line.id, code, detail },
      'video: it is unknown whether the line accepted a create; its money stays held',
    )
    // Without this write, the intent becomes unresolved when its time is up.
    await this.#records.write('markUnresolved', intent.id, () =>
      this.#tasks.markUnresolved(intent.id, Date.now()),
    )
    return call.refuse(code, UNKNOWN_RESULT)
  }

  /** Records that no line accepted the create. Waits for the store only if the store has confirmed the intent. */
  async withdraw(): Promise<void> {
    const intent = this.#intent
    if (!intent) return
    const withdrawing = this.#withdraw(intent)
    if (this.#isConfirmed) await withdrawing
  }

  async #withdraw({ id }: TaskIntent): Promise<void> {
    const intended = this.#intended
    const withdrawn = await this.#records.write('withdraw', id, async () => {
      // A row that is still being written would arrive after the withdrawal and stay.
      await intended
      await this.#tasks.withdraw(id)
    })
    if (withdrawn === 'late') return
    this.#setClaim('released')
    if (this.#call.billing) this.#call.billing.reserved = null
  }

  #setClaim(state: 'completed' | 'released'): void {
    const claim = this.#call.idempotency?.claim
    if (claim) claim.state = state
  }

  async #orAway<T>(asked: Promise<T>): Promise<T> {
    try {
      return await storeAnswer(asked)
    } catch (error) {
      throw this.#call.refuse('billing_unavailable', { cause: error })
    }
  }
}

/** The error of a create that a line may have accepted. A client that repeats it could buy the video twice. */
export const UNKNOWN_RESULT = {
  message:
    'It is unknown whether the video was started, and its price stays held. Do not send the request again. Look it up with GET /v1/calls/{request_id}, and open a ticket with POST /v1/tickets, so that the operator resolves it.',
  shouldRetry: false,
}

const NOT_RECORDED =
  'The video may have been started, but could not be recorded. Do not send the request again; report it with its request id.'

/** Returns the task as the store will have it. */
function createdTask(intent: TaskIntent, chosen: ChosenLine, created: CreatedTask, at: number): VideoTask {
  const { line, upstreamModel, price } = chosen
  const intended = { ...intendedTask(intent), line: line.id, upstreamModel, price, lineCost: line.cost }
  return acceptedTask(intended, created, at)?.task ?? intended
}
