import type { OwnAccountAnswer } from 'express-model-gateway/account'
import type { AccountAnswer } from 'express-model-gateway/admin'

/** An account as operators and its own keys see it. */
export type Account = Omit<OwnAccountAnswer, 'key'> & Partial<AccountAnswer>
