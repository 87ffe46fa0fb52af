import { z } from 'zod'
import { budgetChangeSchema, budgetQuery, newBudgetSchema } from '../admin/budgets/budget-schemas.ts'
import { listOf } from './answer-schemas.ts'
import { answersWith, type Endpoint } from './endpoint.ts'

const budget = z.strictObject({
  id: z.string(),
  object: z.literal('budget'),
  scope: z.strictObject({
    account: z.string(),
    key: z.string().nullable(),
    user: z.string().nullable(),
    tag: z.string().nullable(),
  }),
  amount: z.string(),
  period: newBudgetSchema.shape.period,
  timezone: z.string(),
  hard: z.boolean(),
  soft: z.array(z.number()),
  spent: z.string(),
  left: z.string(),
  period_start: z.iso.datetime().nullable(),
  resets_at: z.iso.datetime().nullable(),
  created_at: z.iso.datetime(),
})

const deletedBudget = z.strictObject({
  id: z.string(),
  object: z.literal('budget'),
  deleted: z.literal(true),
})

const admin = { tag: 'Admin', auth: 'admin' } as const

/** The operators' endpoints of budgets. */
export const BUDGET_ENDPOINTS: readonly Endpoint[] = [
  {
    id: 'listBudgets',
    method: 'get',
    path: '/admin/budgets',
    summary: 'Budgets, by their ids',
    ...admin,
    query: budgetQuery,
    answers: answersWith('BudgetList', listOf(budget)),
  },
  {
    id: 'createBudget',
    method: 'post',
    path: '/admin/budgets',
    summary: 'Creates a budget; it counts from now on',
    ...admin,
    body: newBudgetSchema,
    answers: answersWith('Budget', budget, 201),
  },
  {
    id: 'getBudget',
    method: 'get',
    path: '/admin/budgets/{id}',
    summary: 'One budget, with what is spent and left in the running period',
    ...admin,
    answers: answersWith('Budget', budget),
  },
  {
    id: 'changeBudget',
    method: 'patch',
    path: '/admin/budgets/{id}',
    summary: 'Changes the amount of a budget, whether it refuses, and what is told',
    ...admin,
    body: budgetChangeSchema,
    answers: answersWith('Budget', budget),
  },
  {
    id: 'deleteBudget',
    method: 'delete',
    path: '/admin/budgets/{id}',
    summary: 'Deletes a budget',
    ...admin,
    answers: answersWith('DeletedBudget', deletedBudget),
  },
]
